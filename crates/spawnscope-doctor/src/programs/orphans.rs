//! Ends the processes that remain after a program has killed its supervisor. The doctor is a subreaper, so it becomes the parent of these
//! processes, and their pids are not reused before it reaps them.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::program_session::{CHECK_INTERVAL, END_SIGNALS, GRACE, members};
use crate::processes::field;

/// Makes the doctor the parent of orphaned descendants from now on.
pub(super) fn become_subreaper() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Asks the processes of a session to end, and kills those that do not.
pub(super) fn end_session(session: i32) {
    for signals in END_SIGNALS {
        let remaining = running_members(session);
        if remaining.is_empty() {
            break;
        }
        for process in remaining {
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
    while !running_members(session).is_empty() && Instant::now() < until {
        sleep(CHECK_INTERVAL);
    }
}

/// Returns the running processes of a session; without a usable /proc, only its first process. Returns nothing if none of them is our own
/// child: by now, the session id may belong to unrelated processes.
fn running_members(session: i32) -> Vec<i32> {
    let first = child_state(session);
    let running: Vec<i32> = members(session).into_iter().map(u32::cast_signed).collect();
    let is_ours = first.is_some() || running.iter().any(|process| is_adopted(*process));
    match first {
        _ if !is_ours => Vec::new(),
        Some(ChildState::Running) if !running.contains(&session) => vec![session],
        _ => running,
    }
}

enum ChildState {
    Running,
    Ended,
}

/// Returns whether a child of ours is running or has ended, without reaping it; `None` if the process is not our child.
fn child_state(pid: i32) -> Option<ChildState> {
    // SAFETY: all zeroes is a valid `siginfo_t`, which the kernel fills. A pid of zero in it means that the child has not ended.
    unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        let waited = libc::waitid(libc::P_PID, pid.cast_unsigned(), &raw mut information, flags);
        match (waited, information.si_pid()) {
            (0, 0) => Some(ChildState::Running),
            (0, _) => Some(ChildState::Ended),
            _ => None,
        }
    }
}

fn is_adopted(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "PPid") == Some(std::process::id().to_string().as_str())
}

/// Reaps the first process of the session. Other orphans that have ended are reaped by init after the doctor exits.
fn reap(session: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::waitpid(session, std::ptr::null_mut(), libc::WNOHANG) };
}
