//! Counts the processes that a program creates by tracing it from a separate process. When the tracer ends, its tracees continue untraced.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};

use super::guest::GRACE;
use crate::processes;

/// The interval between checks of a traced program.
const PAUSE: Duration = Duration::from_micros(100);

/// Runs the program, and immediately writes one byte to standard output for each process that it and its descendants create. The reader
/// therefore has a count even if the program is killed. Returns the exit status: zero if the program succeeded and all bytes were written.
pub(super) fn report_launches(command: &mut Command) -> i32 {
    // SAFETY: the tracer is single-threaded, so its child may do anything.
    let is_all_reported = match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => follow(child.as_raw()),
        Ok(ForkResult::Child) => become_traced(command),
        Err(_) => false,
    };
    i32::from(!is_all_reported)
}

fn report_one() -> bool {
    // SAFETY: reads one byte of ours. Avoids the standard library's buffer, whose lock another thread may have held at the fork.
    unsafe { libc::write(1, c"+".as_ptr().cast(), 1) == 1 }
}

/// Executes the program, which stops at its exec for the tracer.
fn become_traced(command: &mut Command) -> ! {
    // SAFETY: plain system calls in a process of ours.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 {
            let _not_executed = command.stdout(Stdio::null()).exec();
        }
        libc::_exit(127)
    }
}

/// Traces the process until it ends, and reports each process that it and its descendants create. Returns whether it succeeded and all were
/// reported.
fn follow(root: i32) -> bool {
    let options = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
    let mut until: Option<Instant> = None;
    let (mut is_reported, mut is_prepared, mut status_of_root) = (true, false, None);
    while until.is_none_or(|until| Instant::now() < until) {
        let mut status = 0;
        // SAFETY: `status` has room for a status.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        match pid {
            0 => sleep(PAUSE),
            -1 => break,
            _ if pid == root && (libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) => {
                status_of_root = Some(status);
                // A new process whose first stop was not handled before the tracer ends would stay stopped.
                until = Some(Instant::now() + GRACE);
            }
            _ if libc::WIFSTOPPED(status) => {
                if !is_prepared {
                    request(libc::PTRACE_SETOPTIONS, pid, options);
                    is_prepared = true;
                }
                if is_new_process(pid, status >> 16) {
                    is_reported &= report_one();
                }
                request(libc::PTRACE_CONT, pid, signal_for(status));
            }
            _ => {}
        }
    }
    status_of_root == Some(0) && is_reported
}

/// The C libraries disagree on the type.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(what: Request, pid: i32, data: i32) {
    // SAFETY: the requests used here do not access our memory. Requests to a dead process fail, which is harmless.
    unsafe { libc::ptrace(what, pid, 0usize, data as usize) };
}

/// The signal to deliver. New processes stop with SIGSTOP, execs and events with SIGTRAP; these are not delivered.
fn signal_for(status: i32) -> i32 {
    match libc::WSTOPSIG(status) {
        libc::SIGSTOP | libc::SIGTRAP => 0,
        signal => signal,
    }
}

/// Whether an event is about a new process, not a thread.
fn is_new_process(pid: i32, event: i32) -> bool {
    match event {
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => true,
        libc::PTRACE_EVENT_CLONE => {
            let mut new: libc::c_ulong = 0;
            // SAFETY: the kernel writes one long to `new`.
            let told = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0usize, &raw mut new) };
            // For a thread that is not the leader of its thread group, Tgid differs.
            told == 0
                && std::fs::read_to_string(format!("/proc/{new}/status"))
                    .is_ok_and(|status| processes::field(&status, "Tgid") == Some(new.to_string().as_str()))
        }
        _ => false,
    }
}
