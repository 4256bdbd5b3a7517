//! What a program has left running that killed the process which looked after it. It is the doctor's own then: it adopts orphans, so that
//! they keep their numbers until it has waited for them.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::guest::{GRACE, PAUSE, REQUESTS, members};
use crate::doctor::processes::field;

/// From now on, processes whose parents have ended are children of the doctor.
pub(super) fn adopt() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Asks a session to end, and kills what does not heed that.
pub(super) fn see_out(session: i32) {
    for signals in REQUESTS {
        let left = running(session);
        if left.is_empty() {
            break;
        }
        for process in left {
            for signal in signals {
                // SAFETY: a plain system call; a session's number is taken as long as it has members, or its first process was not
                // waited for.
                unsafe { libc::kill(process, *signal) };
            }
        }
        await_end(session, GRACE);
    }
    reap(session);
}

fn await_end(session: i32, limit: Duration) {
    let until = Instant::now() + limit;
    while !running(session).is_empty() && Instant::now() < until {
        sleep(PAUSE);
    }
}

/// Who of the session has not ended. Without /proc it is the first process alone. Nobody where none of them is a child of ours: the
/// number may be somebody else's by now.
fn running(session: i32) -> Vec<i32> {
    let is_child = state_of_child(session);
    let others: Vec<i32> = members(session).into_iter().map(u32::cast_signed).collect();
    let is_ours = is_child.is_some() || others.iter().any(|process| is_adopted(*process));
    match is_child {
        _ if !is_ours => Vec::new(),
        Some(State::Running) if !others.contains(&session) => vec![session],
        _ => others,
    }
}

enum State {
    Running,
    Ended,
}

/// Whether a child of ours has ended, without reaping it; `None` where it is none.
fn state_of_child(pid: i32) -> Option<State> {
    // SAFETY: all zeroes is a valid information, which the kernel fills; the first process that is asked for is none.
    unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let waited = libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut information, flags);
        match (waited, information.si_pid()) {
            (0, 0) => Some(State::Running),
            (0, _) => Some(State::Ended),
            _ => None,
        }
    }
}

fn is_adopted(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "PPid") == Some(std::process::id().to_string().as_str())
}

/// The others that have ended are waited for by the first process of the machine, when the doctor has gone.
fn reap(session: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::waitpid(session, std::ptr::null_mut(), libc::WNOHANG) };
}
