//! The status of a child as the skipped shell would have reported it. dash waits for its command,
//! prints the signal that killed it, and exits with 128 + the signal's number. bash is replaced by
//! its command.
//!
//! A terminal sends SIGINT, SIGQUIT and SIGHUP to the whole group. They kill dash, too, and so its
//! caller sees the signal itself: this ends the loop around `system` of the manual page. If another
//! process sent one of them to the command alone, which the library cannot know, dash would have
//! survived.

use libc::{c_int, pid_t};

use crate::shell::Shell;
use crate::spawn::ReplacedShell;
use crate::strings::{bytes, errno};

/// Waits for a child that replaced a shell, or for a shell (`None`). Returns its status, or -1 with
/// errno.
pub fn wait(pid: pid_t, replaced: Option<ReplacedShell>) -> c_int {
    let mut status = 0;
    loop {
        // SAFETY: the status is this function's own.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } == pid {
            break;
        }
        if errno() != libc::EINTR {
            return -1;
        }
    }
    let dash = replaced.filter(|replaced| replaced.shell == Shell::Dash);
    if let Some(dash) = dash.filter(|_| libc::WIFSIGNALED(status) && !kills_group(libc::WTERMSIG(status))) {
        if !dash.is_silent {
            print_signal(status);
        }
        return (128 + libc::WTERMSIG(status)) << 8;
    }
    status
}

/// Whether a signal that killed the command is assumed to have been sent to its whole group, as by
/// a terminal.
fn kills_group(signal: c_int) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGQUIT | libc::SIGHUP)
}

/// Prints dash's message about the signal, on the same standard error.
fn print_signal(status: c_int) {
    let signal = libc::WTERMSIG(status);
    if signal == libc::SIGPIPE {
        return;
    }
    let mut line = [0_u8; 80];
    let mut length = 0;
    // SAFETY: strsignal returns a C string, which is copied at once.
    let name = unsafe { bytes(libc::strsignal(signal)) };
    let core: &[u8] = if libc::WCOREDUMP(status) { b" (core dumped)" } else { b"" };
    for byte in name.iter().chain(core).chain(b"\n") {
        if let Some(target) = line.get_mut(length) {
            *target = *byte;
            length += 1;
        }
    }
    // SAFETY: the buffer has that many bytes.
    unsafe { libc::write(2, line.as_ptr().cast(), length) };
}
