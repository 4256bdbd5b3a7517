//! The user as whom the command runs: the user who called sudo if sudo started spawnscope, and another user only on request. A copy of bash
//! with the name sudo takes the place of sudo.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::run::{Finished, SPAWNSCOPE, run};
use crate::support::{apply, live_test};

/// Has `parent`, a shell, run spawnscope with these arguments in a directory to which every user may write.
fn below(parent: &str, arguments: &str) -> Finished {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).expect("chmod");
    below_in(directory.path(), parent, arguments)
}

/// Has `parent`, a shell, run spawnscope with these arguments in a directory, with what sudo sets for an unprivileged user.
pub fn below_in(directory: &Path, parent: &str, arguments: &str) -> Finished {
    let programs = tempfile::tempdir().expect("a temporary directory");
    let shell = programs.path().join(parent);
    std::fs::copy("/bin/bash", &shell).expect("a copy of bash");
    // Followed by another command, bash does not execute spawnscope in its own place.
    let script = format!("\"$0\" {arguments}; exit $?");
    let mut command = Command::new(shell);
    command.args(["-c", &script, SPAWNSCOPE]).current_dir(directory);
    run(command.env("SUDO_UID", "65534").env("SUDO_GID", "65534"))
}

fn said(finished: &Finished) -> String {
    finished.errors().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[apply(live_test)]
#[needs(Ebpf, Setpriv)]
fn sudo_runs_the_command_as_its_caller_with_a_message() {
    let finished = below("sudo", "record -- id -u").expect_code(0);
    assert_eq!(finished.output(), "65534\n");
    assert!(said(&finished).contains("who called sudo"), "{}", finished.errors());
}

#[apply(live_test)]
#[needs(Ebpf, Setpriv)]
fn an_inherited_sudo_uid_is_ignored_with_a_message() {
    let finished = below("shell", "record -- id -u").expect_code(0);
    assert_eq!(finished.output(), "0\n");
    assert!(
        said(&finished).contains("runs as root: sudo did not start"),
        "{}",
        finished.errors()
    );
}

#[apply(live_test)]
#[needs(Ebpf, Setpriv)]
fn the_command_can_be_run_as_another_user_or_as_root() {
    let finished = below("shell", "record --user nobody -- id -u").expect_code(0);
    assert_eq!(finished.output(), "65534\n");
    assert!(
        said(&finished).contains("the command runs as nobody"),
        "{}",
        finished.errors()
    );
    let finished = below("sudo", "record --as-root -- id -u").expect_code(0);
    assert_eq!(finished.output(), "0\n");
    let finished = below("shell", "record --user no-such-user -- id -u").expect_code(125);
    assert!(
        said(&finished).contains("no user 'no-such-user'"),
        "{}",
        finished.errors()
    );
}

#[apply(live_test)]
#[needs(Setpriv, Ptrace)]
fn the_command_of_hold_run_is_the_same_users_as_the_held_one() {
    let tool = "id -u; id -g; kill -CONT {pid}";
    let finished = below("sudo", &format!("hold --run '{tool}' -- id -u")).expect_code(0);
    assert_eq!(finished.output(), "65534\n65534\n65534\n", "{}", finished.errors());
    let finished = below("sudo", &format!("hold --as-root --run '{tool}' -- id -u")).expect_code(0);
    assert_eq!(finished.output(), "0\n0\n0\n", "{}", finished.errors());
}
