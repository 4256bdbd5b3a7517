//! Traces the command for `hold`: reports each exec, passes all other stops on, and finally leaves
//! one process stopped and detaches from all processes.

use std::io;

use spawnscope_data::event::Pid;
use spawnscope_system::ptrace::{Event, Options, Resume, Stop, Tracer, Tracers, named_processes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The process has executed a program and is stopped before the first instruction. The caller
    /// must call `resume` or `leave_stopped`.
    Executed(Pid),
    /// A thread of a followed process, or a child of ours, has ended with this wait status.
    Ended(Pid, i32),
    Stopped(Pid),
}

/// Follows processes until it detaches from them.
#[derive(Debug)]
pub struct ExecTracer {
    tracer: Tracer,
    tracers: Tracers,
    /// Other tracers that are stopped at their exec until the processes that they are going to
    /// trace are let go.
    waiting_tracers: Vec<Pid>,
}

impl ExecTracer {
    /// Starts to follow our own child, and its descendants if `with_descendants`.
    pub fn seize(command: Pid, with_descendants: bool) -> io::Result<ExecTracer> {
        let options = if with_descendants { Options::EXEC | Options::CREATION } else { Options::EXEC };
        let mut tracer = Tracer::new();
        tracer.seize(command, options)?;
        Ok(ExecTracer { tracer, tracers: Tracers::default(), waiting_tracers: Vec::new() })
    }

    /// Returns the next change, without waiting. SIGCHLD signals that there may be one.
    pub fn next_change(&mut self) -> Option<Change> {
        loop {
            let event = self.tracer.next_event();
            if !self.tracer.is_letting_go() {
                let tracers = std::mem::take(&mut self.waiting_tracers);
                tracers.into_iter().for_each(|tracer| self.tracer.resume(tracer, Resume::Detach(0)));
            }
            match event? {
                Event::Ended(pid, status) => return Some(Change::Ended(pid, status)),
                Event::Stopped(pid, Stop::Exec { .. }) => return Some(Change::Executed(pid)),
                Event::Stopped(thread, stop @ Stop::Group(_)) => {
                    self.tracer.pass_on(thread, stop);
                    return Some(Change::Stopped(thread));
                }
                Event::Stopped(thread, stop) => self.tracer.pass_on(thread, stop),
            }
        }
    }

    /// Whether a process is still followed, so that its changes are read by `next_change`.
    pub fn is_following(&self, pid: Pid) -> bool {
        self.tracer.is_tracing(pid)
    }

    /// Whether a process has executed a program that traces processes itself.
    pub fn is_tracer(&mut self, executed: Pid, program: &[u8]) -> bool {
        self.tracers.is_tracer(executed, program)
    }

    /// Detaches from a tracer that has executed its program, and before that, from the processes
    /// that its arguments name.
    pub fn leave_tracer(&mut self, executed: Pid, arguments: &[Vec<u8>]) {
        for target in named_processes(arguments).filter(|target| *target != executed) {
            self.tracer.let_go(target);
        }
        if self.tracer.is_letting_go() {
            self.waiting_tracers.push(executed);
        } else {
            self.tracer.resume(executed, Resume::Detach(0));
        }
    }

    pub fn resume(&mut self, executed: Pid) {
        self.tracer.resume(executed, Resume::Continue(0));
    }

    /// Detaches from all processes, because a process can have only one tracer, and the debugger
    /// must attach. The process that has executed a program stops by SIGSTOP before its first
    /// instruction.
    pub fn leave_stopped(&mut self, executed: Pid) {
        // A signal passed with PTRACE_DETACH would be ignored here, because the process is not in a
        // signal-delivery stop. SAFETY: a plain system call.
        unsafe { libc::kill(executed.0, libc::SIGSTOP) };
        self.tracer.resume(executed, Resume::Detach(0));
        self.tracer.detach_all();
    }
}
