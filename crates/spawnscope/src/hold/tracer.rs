//! The ptrace side: follows a command, and what it launches if that is wanted, tells of each exec while the process is stopped in
//! it, and lets go of all. All by `libc`: the statuses and signals of nix are an enum without the real-time signals, which the C
//! library's threads send each other, so that a process stopped by one could neither be understood nor continued.
//!
//! Everything happens on the thread that seized the command: ptrace knows tracers by thread.

use std::collections::HashSet;
use std::io;

use crate::event::Pid;

/// Who is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The command's first exec.
    Command,
    /// Every exec of the command and of what it launches.
    Tree,
}

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has executed a program and is stopped before the first instruction: `go_on` or `leave_stopped` is due.
    Executed(Pid),
    /// It has ended, as `wait(2)` says; a thread of a followed process, or a child of ours.
    Ended(Pid, i32),
}

/// Follows processes until it lets go of them. Dropping it ends nobody: what the kernel still holds of them goes with us.
#[derive(Debug)]
pub struct Tracer {
    /// Threads that were seen and not seen to end. Some may be gone: a request to one that is not ours is refused.
    threads: HashSet<i32>,
    is_letting_go: bool,
}

impl Tracer {
    /// Begins to follow a child of ours.
    ///
    /// # Errors
    /// When the kernel refuses it.
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

    /// What has happened since; does not wait for it (SIGCHLD says when to look).
    pub fn next(&mut self) -> Option<Change> {
        loop {
            let mut status = 0;
            // SAFETY: `status` is a valid place for a status.
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

    /// Lets a process that has executed a program run on.
    pub fn go_on(&self, executed: Pid) {
        self.resume(executed.0, 0);
    }

    /// Lets go of everybody, and of a process that has executed a program so that it stops by itself before its first
    /// instruction. A tracer there can be only one of: whoever comes next finds none.
    pub fn leave_stopped(&mut self, executed: Pid) {
        // A signal given with the detaching would be ignored here, as it is at all stops but those by a signal.
        // SAFETY: a plain system call.
        unsafe { libc::kill(executed.0, libc::SIGSTOP) };
        self.is_letting_go = true;
        self.resume(executed.0, 0);
        for tid in self.threads.drain().filter(|tid| *tid != executed.0) {
            // Its stop is reported, and `next` lets go of it then. A parent within vfork stops when its child has executed.
            let _ = request(libc::PTRACE_INTERRUPT, tid, 0);
        }
    }

    /// Ends a stop that is nobody's business but the process's own.
    fn pass_on(&mut self, tid: i32, signal: i32, event: i32) {
        match event {
            // Stopped for a signal: it is to have it.
            0 => self.resume(tid, signal),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.threads.extend(created(tid));
                self.resume(tid, 0);
            }
            // The process was stopped by somebody, and stays so until it is continued.
            STOPPED if is_stopping(signal) && !self.is_letting_go => {
                let _ = request(libc::PTRACE_LISTEN, tid, 0);
            }
            // New, interrupted, continued, or let go of: then the kernel keeps a stopped process stopped.
            _ => self.resume(tid, 0),
        }
    }

    /// Resumes a stopped thread, or lets go of it. A refusal means that it was killed meanwhile, which is told next.
    fn resume(&self, tid: i32, signal: i32) {
        let how = if self.is_letting_go {
            libc::PTRACE_DETACH
        } else {
            libc::PTRACE_CONT
        };
        let _ = request(how, tid, signal);
    }
}

/// The event of a stop that no system call caused.
const STOPPED: i32 = libc::PTRACE_EVENT_STOP;

fn is_stopping(signal: i32) -> bool {
    matches!(signal, libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU)
}

/// The thread that the thread stopped by an event of creation has created; `None`: it was killed meanwhile.
fn created(tid: i32) -> Option<i32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the request writes one unsigned long, to which the pointer points.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0usize, &raw mut message) };
    (result == 0).then(|| i32::try_from(message).ok())?
}

/// The C libraries disagree on it.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

/// One of the requests whose data is a number.
fn request(request: Request, tid: i32, data: i32) -> io::Result<()> {
    // SAFETY: with these requests, the kernel touches no memory of ours.
    let result = unsafe { libc::ptrace(request, tid, 0usize, data as usize) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
