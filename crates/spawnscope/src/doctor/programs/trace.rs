//! Counts the processes that a program makes, by tracing it, in a process of its own: what it traces goes on untraced when it ends.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};

use super::guest::GRACE;
use crate::doctor::processes;

/// Between looks at a traced program.
const PAUSE: Duration = Duration::from_micros(100);

/// Runs the program, and writes a byte to standard output for each process that it and its descendants make, at once: whoever reads
/// knows how many there were, also when the program is ended. The exit status to leave with: zero if it came to its end and all is told.
pub(super) fn tell_launches(command: &mut Command) -> i32 {
    // SAFETY: who traces has one thread, so that its child may do what any process may.
    let is_all_told = match unsafe { fork() } {
        Ok(ForkResult::Parent { child }) => follow(child.as_raw()),
        Ok(ForkResult::Child) => become_traced(command),
        Err(_) => false,
    };
    i32::from(!is_all_told)
}

fn tell_one() -> bool {
    // SAFETY: one byte of ours is read. Not by the buffer of the standard library, which other threads may have held.
    unsafe { libc::write(1, c"+".as_ptr().cast(), 1) == 1 }
}

/// The program stops at its exec for the tracer.
fn become_traced(command: &mut Command) -> ! {
    // SAFETY: plain system calls in a process of our own.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0 {
            let _not_executed = command.stdout(Stdio::null()).exec();
        }
        libc::_exit(127)
    }
}

/// Lets the traced process go on until it has ended, and tells what it and its descendants make; whether it succeeded, and all is told.
fn follow(root: i32) -> bool {
    let options = libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE;
    let mut until: Option<Instant> = None;
    let (mut is_told, mut is_prepared, mut status_of_root) = (true, false, None);
    while until.is_none_or(|until| Instant::now() < until) {
        let mut status = 0;
        // SAFETY: `status` has room for a status.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        match pid {
            0 => sleep(PAUSE),
            -1 => break,
            _ if pid == root && (libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) => {
                status_of_root = Some(status);
                // Whoever is new, and let go before its first stop was answered, would stay stopped.
                until = Some(Instant::now() + GRACE);
            }
            _ if libc::WIFSTOPPED(status) => {
                if !is_prepared {
                    request(libc::PTRACE_SETOPTIONS, pid, options);
                    is_prepared = true;
                }
                if is_new_process(pid, status >> 16) {
                    is_told &= tell_one();
                }
                request(libc::PTRACE_CONT, pid, signal_for(status));
            }
            _ => {}
        }
    }
    status_of_root == Some(0) && is_told
}

/// The C libraries disagree on it.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(what: Request, pid: i32, data: i32) {
    // SAFETY: the requests used here touch no memory of ours. One to a process that has died is refused, which is fine.
    unsafe { libc::ptrace(what, pid, 0usize, data as usize) };
}

/// What the process would have got without us. New processes stop by SIGSTOP, execs and events by SIGTRAP.
fn signal_for(status: i32) -> i32 {
    match libc::WSTOPSIG(status) {
        libc::SIGSTOP | libc::SIGTRAP => 0,
        signal => signal,
    }
}

/// Whether an event tells of a process, not of a thread.
fn is_new_process(pid: i32, event: i32) -> bool {
    match event {
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => true,
        libc::PTRACE_EVENT_CLONE => {
            let mut new: libc::c_ulong = 0;
            // SAFETY: the kernel writes one long there.
            let told = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0usize, &raw mut new) };
            // Only leaders of thread groups are listed there.
            told == 0
                && std::fs::read_to_string(format!("/proc/{new}/status"))
                    .is_ok_and(|status| processes::field(&status, "Tgid") == Some(new.to_string().as_str()))
        }
        _ => false,
    }
}
