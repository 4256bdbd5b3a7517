//! Traces processes by ptrace(2). `Tracer` seizes threads, reports their events (`event`), resumes
//! them, and detaches from them; `registers`, `entry`, `exec`, `stores`, `unblocking` and `again`
//! examine and change a stopped thread, `identification` counts CPUID instructions of a child,
//! `stop_cost` measures what a stop costs, and `refusal` explains why the kernel does not permit
//! tracing. The caller decides what happens at each stop. If it passes the stop on
//! (`Tracer::pass_on`), the thread behaves as if it were not traced.
//!
//! Rules of the kernel that shape this module:
//! - Each thread of a process is a separate tracee, with its own stops. The tracer is a thread too:
//!   requests by other threads fail with ESRCH. `Tracer` is therefore not `Send`.
//! - PTRACE_SEIZE, unlike PTRACE_ATTACH and PTRACE_TRACEME, does not stop the thread and does not
//!   generate artificial signals: execs and new threads have events of their own, and group-stops
//!   are distinguishable from signals.
//! - All requests except PTRACE_INTERRUPT and PTRACE_SEIZE need a stopped thread. They fail with
//!   ESRCH if the thread runs, or if it was killed in the meantime: SIGKILL ends a thread in any
//!   stop. The end is then the next event of that thread, so `resume` does not report failure.
//! - While a thread is in a ptrace-stop, it does not react to any other signal.
//! - If the tracer exits, the kernel detaches it from all tracees, which continue untraced.
//! - A traced set-user-ID program gets no privilege, unless the tracer has CAP_SYS_PTRACE.
//!
//! This module uses `libc` directly, because nix represents signals and statuses by an enum without
//! real-time signals. The C library sends real-time signals between threads, and nix could neither
//! decode such a stop nor pass the signal on.

mod again;
mod entry;
mod event;
mod exec;
mod facts;
#[cfg(target_arch = "x86_64")]
pub mod identification;
pub mod refusal;
mod registers;
mod request;
pub mod stop_cost;
mod stores;
mod tracers;
pub mod unblocking;

use std::io;
use std::marker::PhantomData;

pub use self::again::execute_again;
pub use self::entry::{Entry, EntryDetour};
pub use self::event::{Creation, Event, Stop};
pub use self::exec::{DetouredCall, ExecDetour, ExecPoint};
pub use self::facts::{ExecFacts, FileVersion};
pub use self::registers::{CallInfo, CallStop, NATIVE_AUDIT_ARCH, Registers};
pub use self::request::{Options, Resume};
use self::request::{interrupt, resume, seize};
pub use self::stores::StoreDetours;
pub use self::tracers::{Tracers, named_processes};
use crate::ids::IdSet;
use crate::procfs;
use spawnscope_data::event::Pid;

#[derive(Debug, Default)]
pub struct Tracer {
    /// The tracees that are not known to have ended. Some may be gone, because an exec ends all
    /// other threads of its process without an event. Requests to threads that we do not trace fail
    /// without effect, even if their ids were reused.
    threads: IdSet<Pid>,
    /// The tracees to detach from at their next stop.
    leaving: IdSet<Pid>,
    /// Other tracers that are stopped until there are no threads to leave.
    waiting: Vec<Pid>,
    is_detaching: bool,
    // Not `Send`, because the kernel identifies tracers by thread.
    _not_send: PhantomData<*const ()>,
}

impl Tracer {
    pub fn new() -> Tracer {
        Tracer::default()
    }

    /// Starts to trace a thread, which continues to run. Each other thread of its process needs its
    /// own call. Threads and processes that the thread creates from now on are traced too if the
    /// options include `Options::CREATION`. If the kernel refuses, `refusal` explains why.
    pub fn seize(&mut self, thread: Pid, options: Options) -> io::Result<()> {
        seize(thread, options)?;
        self.threads.insert(thread);
        Ok(())
    }

    /// Returns the next event, without waiting. SIGCHLD signals that there may be one. Also reports
    /// when untraced children of this thread end, because one call waits for all children. After
    /// `detach_all`, only ends are reported.
    ///
    /// If a traced child of this process has ended, this function reaps it, even if another thread
    /// of this process created it.
    pub fn next_event(&mut self) -> Option<Event> {
        self.event(libc::WNOHANG)
    }

    /// Waits for the next event and returns it, with one system call. `None` if a signal handler
    /// interrupted the wait (`signals::ThreadWaker`), or if this thread has no tracees or other
    /// children.
    pub fn await_event(&mut self) -> Option<Event> {
        self.event(0)
    }

    fn event(&mut self, flags: i32) -> Option<Event> {
        loop {
            let (thread, status) = wait(flags)?;
            let event = Event::decode(thread, status, request::message);
            match event {
                Event::Ended(thread, _) => {
                    self.threads.remove(&thread);
                    if self.leaving.remove(&thread) {
                        self.resume_waiting();
                    }
                }
                Event::Stopped(thread, stop) => {
                    self.update_threads(thread, stop);
                    let is_leaving = self.leaving.remove(&thread);
                    if is_leaving || self.is_detaching {
                        self.resume(thread, stop.transparent_detach());
                        if is_leaving {
                            self.resume_waiting();
                        }
                        continue;
                    }
                }
            }
            return Some(event);
        }
    }

    /// Updates the set of tracees. The first stop of a new thread may arrive before or after the
    /// event of its creator.
    fn update_threads(&mut self, thread: Pid, stop: Stop) {
        self.threads.insert(thread);
        if let Stop::Created { child, .. } = stop {
            self.threads.extend(child);
        }
    }

    /// Begins to detach from a process, because another program is about to trace it. `next_event`
    /// then reports none of its threads, which this function returns.
    pub fn let_go(&mut self, process: Pid) -> Vec<Pid> {
        let mut threads = procfs::threads(process);
        threads.retain(|thread| self.is_tracing(*thread));
        for thread in &threads {
            self.leaving.insert(*thread);
            let _ = interrupt(*thread);
        }
        threads
    }

    /// Detaches from a stopped process that has become a tracer itself, once `let_go` has detached
    /// from the processes that it is going to trace.
    pub fn detach_after_others(&mut self, tracer: Pid) {
        self.waiting.push(tracer);
        self.resume_waiting();
    }

    fn resume_waiting(&mut self) {
        if self.leaving.is_empty() {
            let waiting = std::mem::take(&mut self.waiting);
            waiting.into_iter().for_each(|tracer| self.resume(tracer, Resume::Detach(0)));
        }
    }

    /// Whether a thread is traced. Its changes must then be read only by `next_event`.
    pub fn is_tracing(&self, thread: Pid) -> bool {
        self.threads.contains(&thread)
    }

    pub fn resume(&mut self, thread: Pid, how: Resume) {
        if matches!(how, Resume::Detach(_)) {
            self.threads.remove(&thread);
        }
        // Failure means that the thread was killed, which is its next event.
        let _ = resume(thread, how);
    }

    pub fn pass_on(&mut self, thread: Pid, stop: Stop) {
        self.resume(thread, stop.transparent_resume());
    }

    /// Detaches from all threads. Detaching needs a stopped thread, so running threads are
    /// interrupted, and `next_event` detaches from each when it has stopped. A parent blocked in
    /// vfork stops only once its child has executed a program or ended. Threads that are stopped
    /// now must be resumed by the caller, who may detach from them (`Resume::Detach`).
    pub fn detach_all(&mut self) {
        self.is_detaching = true;
        self.interrupt_all();
    }

    /// Stops all running threads. Their stops are then reported, so that the caller can undo
    /// changes to the threads before it detaches.
    pub fn interrupt_all(&self) {
        for thread in &self.threads {
            let _ = interrupt(*thread);
        }
    }
}

/// Flags that select the children to wait for. __WALL includes threads, and children whose exit
/// signal is not SIGCHLD. __WNOTHREAD excludes the children of other threads, because those threads
/// wait for them.
const CHILDREN: i32 = libc::__WALL | libc::__WNOTHREAD;

/// Returns the next change of a tracee or child of this thread as its id and wait status; `None` if
/// there is no change or no such thread.
fn wait(flags: i32) -> Option<(Pid, i32)> {
    let mut status = 0;
    // SAFETY: `status` has room for a status.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, CHILDREN | flags) };
    (thread > 0).then_some((Pid(thread), status))
}

#[cfg(test)]
mod tests;
