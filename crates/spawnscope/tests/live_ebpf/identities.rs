//! The user as whom the command runs: the user who called sudo if sudo started spawnscope, and
//! another user only on request. A copy of bash with the name sudo acts as sudo.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::prelude::*;

/// Runs spawnscope with these arguments from a copy of bash named `parent`, in a directory to which
/// every user may write.
fn run_below(parent: &str, arguments: &str) -> Finished {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).expect("chmod");
    run_below_in(directory.path(), parent, arguments)
}

/// Runs spawnscope with these arguments from a copy of bash named `parent`, in this directory, with
/// the variables that sudo sets for an unprivileged user.
pub fn run_below_in(directory: &Path, parent: &str, arguments: &str) -> Finished {
    let programs = tempfile::tempdir().expect("a temporary directory");
    let shell = programs.path().join(parent);
    std::fs::copy("/bin/bash", &shell).expect("a copy of bash");
    // Since another command follows, bash forks for spawnscope instead of executing it in its own
    // process.
    let script = format!("\"$0\" {arguments}; exit $?");
    let mut command = Command::new(shell);
    command.args(["-c", &script, SPAWNSCOPE]).current_dir(directory);
    run(command.env("SUDO_UID", "65534").env("SUDO_GID", "65534"))
}

#[apply(live_test)]
#[needs(Setpriv)]
fn the_command_runs_as_the_caller_of_sudo_or_as_requested_with_a_message() {
    for (parent, options, user, message) in [
        ("sudo", "", "65534\n", "who called sudo"),
        ("shell", "", "0\n", "runs as root: sudo did not start"),
        ("shell", "--user nobody", "65534\n", "the command runs as nobody"),
        ("sudo", "--as-root", "0\n", ""),
    ] {
        let finished = run_below(parent, &format!("record {options} -- id -u")).expect_code(0);
        assert_eq!(finished.output(), user, "{parent} {options}");
        assert_contains(&finished.message(), [message]);
    }
    let finished = run_below("shell", "record --user no-such-user -- id -u").expect_code(125);
    assert_contains(&finished.message(), ["no user 'no-such-user'"]);
}

#[apply(live_test)]
#[needs(Setpriv, Ptrace)]
fn hold_runs_its_run_command_as_the_user_of_the_held_process() {
    let tool = "id -u; id -g; kill -CONT {pid}";
    let finished = run_below("sudo", &format!("hold --run '{tool}' -- id -u")).expect_code(0);
    assert_eq!(finished.output(), "65534\n65534\n65534\n", "{}", finished.errors());
    let finished = run_below("sudo", &format!("hold --as-root --run '{tool}' -- id -u")).expect_code(0);
    assert_eq!(finished.output(), "0\n0\n0\n", "{}", finished.errors());
}
