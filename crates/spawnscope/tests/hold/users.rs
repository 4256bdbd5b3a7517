//! `hold` without privilege: an ordinary user can hold their own processes, and set-user-ID
//! programs lose their privilege.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;

use super::holding::{await_held, send};
use crate::support::prelude::*;
use crate::support::run::copy_program;

/// Creates a directory for all users with a copy of `tiny`, which is named `own` and has this mode.
fn public_directory(mode: u32) -> PublicDirectory {
    let directory = PublicDirectory::new();
    let own = directory.path().join("own");
    copy_program(&path("tiny"), &own);
    fs::set_permissions(own, fs::Permissions::from_mode(mode)).expect("chmod");
    directory
}

/// Starts `hold` as an unprivileged user in that directory.
fn hold(directory: &PublicDirectory, arguments: &[&str]) -> Running {
    let mut command = as_nobody();
    command.args(["setsid", "./spawnscope", "hold"]).args(arguments);
    Running::start(command.current_dir(directory.path()).stdin(std::process::Stdio::null()))
}

#[apply(live_test)]
#[needs(Cc, Setpriv)]
fn an_ordinary_user_holds_a_launch() {
    let directory = public_directory(0o755);
    let running = hold(&directory, &["--match", "own", "sh", "-c", "./own; exit 3"]);
    let pid = await_held(&running);
    send(pid, Signal::SIGCONT);
    let finished = running.finish().expect_code(3);
    assert!(!finished.errors().contains("privilege"), "{}", finished.errors());
}

#[apply(live_test)]
#[needs(Cc, Setpriv)]
fn a_program_that_loses_its_privilege_is_reported() {
    for mode in [0o4755, 0o2755] {
        let directory = public_directory(mode);
        let finished =
            hold(&directory, &["--match", "nothing*", "sh", "-c", "./own; ./own; exit 3"]).finish().expect_code(3);
        assert_eq!(finished.errors().matches("without that privilege").count(), 1, "{}", finished.errors());
    }
}

#[apply(live_test)]
#[needs(Cc, Setpriv)]
fn a_program_that_may_not_be_read_is_held_by_its_arguments() {
    let directory = public_directory(0o711);
    let running = hold(&directory, &["--match", "./own seen", "sh", "-c", "./own seen; exit 3"]);
    let pid = await_held(&running);
    send(pid, Signal::SIGCONT);
    running.finish().expect_code(3);
}
