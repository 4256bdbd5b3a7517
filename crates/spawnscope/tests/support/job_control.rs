//! Job control with spawnscope between a shell and a command.

use std::process::Command;

use super::pty::Session;
use super::run::SPAWNSCOPE;

/// Checks that a shell sees that the command has stopped, as it sees it without spawnscope, and
/// that the shell's `fg` continues the command.
pub fn assert_a_shell_sees_stops_through(verb: &[&str]) {
    let script = "set -m; \"$@\" sh -c 'kill -STOP $$; echo continued; exit 7'; echo stopped $?; fg; echo ended $?";
    let mut shell = Command::new("bash");
    shell.args(["-c", script, "bash", SPAWNSCOPE]).args(verb).arg("--");
    let session = Session::start(&shell);
    session.await_output(format!("stopped {}", 128 + libc::SIGSTOP).as_bytes());
    session.await_output(b"continued");
    session.await_output(b"ended 7");
    session.finish();
}
