//! Ends the processes that remain after a program killed its supervisor. The doctor is a subreaper and becomes their parent, so that
//! their pids are not reused before it has reaped them.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::program_session::{CHECK_INTERVAL, GRACE, REQUESTS, members};
use crate::processes::field;

/// Makes the doctor the parent of orphaned descendants from now on.
pub(super) fn adopt() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Asks a session to end, and finally kills it.
pub(super) fn end_all(session: i32) {
    for signals in REQUESTS {
        let left = running(session);
        if left.is_empty() {
            break;
        }
        for process in left {
            for signal in signals {
                // SAFETY: a plain system call; the session id is not reused while the session has members,
                // or before its first process is reaped.
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
        sleep(CHECK_INTERVAL);
    }
}

/// The running processes of a session; without a usable /proc, only its first process. Empty if none of them is our own child: the pid
/// may belong to another process by now.
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

/// Whether our own child has ended, without reaping it; `None` if it is not a child.
fn state_of_child(pid: i32) -> Option<State> {
    // SAFETY: all zeroes is a valid `siginfo_t`, which the kernel fills; a pid of zero means that no child has ended.
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

/// Other orphans that have ended are reaped by init after the doctor exits.
fn reap(session: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::waitpid(session, std::ptr::null_mut(), libc::WNOHANG) };
}
