//! The ptrace part: follows a command, and optionally its descendants, reports each exec while the process is stopped in it, and detaches
//! from all. Uses `libc` directly: nix represents signals and statuses by an enum without real-time signals. The C library's threads send
//! those to each other, and a process stopped by one could neither be understood nor continued.
//!
//! Everything happens on the thread that seized the command, because ptrace identifies tracers by thread.

use std::collections::HashSet;
use std::io;

use spawnscope_data::event::Pid;

/// Which processes are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The command, up to its first exec.
    Command,
    /// The command and its descendants, with all their execs.
    Tree,
}

/// A change of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has executed a program and is stopped before the first instruction; `go_on` or `leave_stopped` must follow.
    Executed(Pid),
    /// It has ended with this wait status. Either a thread of a followed process, or a child of ours.
    Ended(Pid, i32),
}

/// Follows processes until it detaches from them. Dropping it does not end any process: the kernel detaches the rest when we exit.
#[derive(Debug)]
pub struct Tracer {
    /// Threads that were seen and not known to have ended. Some may be gone; requests to threads that we do not trace fail.
    threads: HashSet<i32>,
    is_letting_go: bool,
}

impl Tracer {
    /// Starts to follow a child of ours.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn seize(command: Pid, scope: Scope) -> io::Result<Tracer> {
        let options = match scope {
            Scope::Command => libc::PTRACE_O_TRACEEXEC,
            Scope::Tree => {
                libc::PTRACE_O_TRACEEXEC
                    | libc::PTRACE_O_TRACEFORK
                    | libc::PTRACE_O_TRACEVFORK
                    | libc::PTRACE_O_TRACECLONE
            }
        };
        request(libc::PTRACE_SEIZE, command.0, options)?;
        Ok(Tracer {
            threads: HashSet::from([command.0]),
            is_letting_go: false,
        })
    }

    /// The next change, without waiting (SIGCHLD signals that there may be one).
    pub fn next(&mut self) -> Option<Change> {
        loop {
            let mut status = 0;
            // SAFETY: `status` has room for a status.
            let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::WNOHANG) };
            if tid <= 0 {
                return None;
            }
            if !libc::WIFSTOPPED(status) {
                self.threads.remove(&tid);
                return Some(Change::Ended(Pid(tid), status));
            }
            self.threads.insert(tid);
            if status >> 16 == libc::PTRACE_EVENT_EXEC && !self.is_letting_go {
                return Some(Change::Executed(Pid(tid)));
            }
            self.pass_on(tid, libc::WSTOPSIG(status), status >> 16);
        }
    }

    /// Continues a process that has executed a program.
    pub fn go_on(&self, executed: Pid) {
        self.resume(executed.0, 0);
    }

    /// Detaches from all processes. The process that has executed a program will stop by SIGSTOP before its first instruction. A process
    /// can have only one tracer, so a debugger could not attach otherwise.
    pub fn leave_stopped(&mut self, executed: Pid) {
        // A signal passed with PTRACE_DETACH would be ignored here, because the process is not in a signal-delivery stop.
        // SAFETY: a plain system call.
        unsafe { libc::kill(executed.0, libc::SIGSTOP) };
        self.is_letting_go = true;
        self.resume(executed.0, 0);
        for tid in self.threads.drain().filter(|tid| *tid != executed.0) {
            // `next` detaches from the thread when its stop is reported. A parent blocked in vfork stops once its child has executed.
            let _ = request(libc::PTRACE_INTERRUPT, tid, 0);
        }
    }

    /// Continues from a stop that needs no report.
    fn pass_on(&mut self, tid: i32, signal: i32, event: i32) {
        match event {
            // A signal-delivery stop: deliver the signal.
            0 => self.resume(tid, signal),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.threads.extend(created(tid));
                self.resume(tid, 0);
            }
            // A group-stop: the process stays stopped until it is continued.
            STOPPED if is_stopping(signal) && !self.is_letting_go => {
                let _ = request(libc::PTRACE_LISTEN, tid, 0);
            }
            // New, interrupted, continued, or to be detached: after detaching, the kernel keeps a stopped process stopped.
            _ => self.resume(tid, 0),
        }
    }

    /// Continues a stopped thread, or detaches from it. Failure means that it was killed in the meantime, which is reported next.
    fn resume(&self, tid: i32, signal: i32) {
        let how = if self.is_letting_go {
            libc::PTRACE_DETACH
        } else {
            libc::PTRACE_CONT
        };
        let _ = request(how, tid, signal);
    }
}

/// The event of a stop that was not caused by a system call.
const STOPPED: i32 = libc::PTRACE_EVENT_STOP;

fn is_stopping(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

/// The thread created by a thread that is stopped in a creation event; `None` if that thread was killed in the meantime.
fn created(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the request writes one unsigned long to `message`.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0usize, &raw mut message) };
    (result == 0).then(|| i32::try_from(message).ok())?
}

/// The C libraries disagree on the type.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// A request with a number as data.
fn request(request: Request, tid: i32, data: i32) -> io::Result<()> {
    // SAFETY: with these requests, the kernel does not access our memory.
    let result = unsafe { libc::ptrace(request, tid, 0usize, data as usize) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
