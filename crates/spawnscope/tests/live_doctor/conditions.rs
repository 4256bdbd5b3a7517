//! Conditions that a test sets up for one process: by environment variables, or in namespaces.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::examination::{Examination, examine, examine_after};
use crate::support::prelude::*;

#[apply(live_test)]
#[needs(Cc)]
fn a_library_that_is_preloaded_is_timed() {
    let library = format!("LD_PRELOAD={}", path("libfirst.so").display());
    let words = ["env", &library];
    let examination = examine(words, "loader-environment");
    let finding = &examination.findings()[0];
    assert!(finding["evidence"].to_string().contains("libfirst.so"), "{finding:#}");
    assert!(finding["effect_ns"].is_u64(), "{finding:#}");
    let slow = format!("LD_PRELOAD={}", path("libslow.so").display());
    let examination = examine(["env", &slow], "loader-environment");
    let finding = examination.expect("problem", &["`true` takes more than"]);
    assert_eq!(finding["effect_is_lower_bound"], true, "{finding:#}");
    assert!(examination.cost("fork").is_some() && examination.cost("exec_static").is_some());
}

#[apply(live_test)]
#[needs(MountNs)]
fn launches_are_timed_elsewhere_if_the_temporary_directory_refuses_programs() {
    let mount = "mount -t tmpfs -o noexec none \"$1\"; export TMPDIR=\"$1\"";
    best_of_three(|| examine_after(mount, "open-files").check_timed(&["fork", "exec_static", "exec_dynamic"]));
}

#[apply(live_test)]
#[needs(Setpriv, MountNs)]
fn under_sudo_programs_are_started_as_the_user_who_ran_sudo() {
    let directory = tempfile::tempdir_in("/tmp").expect("a temporary directory");
    std::fs::set_permissions(directory.path(), Permissions::from_mode(0o777)).expect("chmod");
    let script = directory.path().join("python3");
    let users = directory.path().join("users");
    let text = format!("#!/bin/sh\necho $(id -u) $(id -G | tr ' ' ,) >>{}\n", users.display());
    write_program(&script, text);
    // The user is in an additional group. A copy of dash named sudo acts as sudo.
    let below_sudo = r#"cp /bin/dash "$1/sudo"; directory=$1; shift; set -- "$directory" "$directory/sudo" -c '"$@"; exit $?' sudo "$@""#;
    let member = format!(
        "{below_sudo}; sed '/^operator:/s/$/nobody/' /etc/group >\"$1/group\"; mount --bind \"$1/group\" /etc/group; cd /; \
         export PATH={}:$PATH SUDO_UID=65534 SUDO_GID=65534",
        directory.path().display()
    );
    examine_after(&member, "interpreters");
    let users = std::fs::read_to_string(users).expect("the program was started");
    let are_right = users.lines().all(|user| user == "65534 65534,37");
    assert!(!users.is_empty() && are_right, "{users}");
}

#[apply(live_test)]
#[needs(Setpriv, Cc)]
fn without_privilege_the_doctor_lists_unseen_checks() {
    let closed = tempfile::tempdir_in("/tmp").expect("a temporary directory");
    std::fs::set_permissions(closed.path(), Permissions::from_mode(0o700)).expect("chmod");
    let path = format!("PATH=/usr/bin:{}", closed.path().join("bin").display());
    let doctor = ["doctor", "--json", "scanners", "search-path"];
    let finished = PublicDirectory::new().run(&["env", "-u", "TMPDIR", &path], &doctor);
    let examination = Examination::from_output(&finished);
    examination.expect("note", &["cannot be entered by this user: /tmp"]);
    assert_contains(&examination.unseen(), ["only root can read"]);
}

#[apply(live_test)]
fn an_error_of_the_doctor_itself_exits_with_125() {
    let unknown = spawnscope(["doctor", "moon"]).expect_code(125);
    unknown.expect_errors(["scanners, loader-cache"]);
    let script = "cd \"$1\" && rmdir \"$1\" && exec \"$2\" doctor";
    let directory = tempfile::tempdir().expect("a temporary directory").keep();
    let mut gone = Command::new("sh");
    gone.args(["-c", script, "sh"]).arg(directory).arg(SPAWNSCOPE);
    let gone = run(&mut gone).expect_code(125);
    gone.expect_errors(["working directory"]);
}
