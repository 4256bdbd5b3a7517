//! Traces processes by ptrace(2). `Tracer` seizes threads, reports their events (`event`), resumes them, and detaches from them;
//! `registers` and `entry` examine and change a stopped thread, `identification` counts CPUID instructions of a child, and `refusal`
//! explains why the kernel does not permit tracing. The caller decides what happens at each stop. A caller without an opinion passes the stop on (`Tracer::pass_on`), and the thread behaves
//! as if it were not traced.
//!
//! The kernel's rules, which shape this module:
//! - Each thread of a process is a tracee of its own, with its own stops. The tracer is a thread too: requests of other threads fail
//!   with ESRCH. `Tracer` is therefore not `Send`.
//! - PTRACE_SEIZE, unlike PTRACE_ATTACH and PTRACE_TRACEME, does not stop the thread and does not fake signals: each exec or new thread
//!   has an event of its own, and group-stops are distinguishable from signals.
//! - A request needs a stopped thread, except for PTRACE_INTERRUPT and PTRACE_SEIZE. It fails with ESRCH if the thread runs, or was
//!   killed in the meantime: SIGKILL ends a thread in any stop. The end is then the next event of that thread, so `resume` does not
//!   report failure.
//! - While a thread is in a ptrace-stop, it does not react to any other signal.
//! - If the tracer exits, the kernel detaches it from all tracees, which continue untraced.
//! - A traced set-user-ID program gets no privilege, unless the tracer has CAP_SYS_PTRACE.
//!
//! A tracer that prints each exec of a child and its descendants, and changes nothing:
//!
//! ```no_run
//! # use spawnscope_data::event::Pid;
//! use std::time::Duration;
//!
//! use spawnscope_system::process::is_readable_within;
//! use spawnscope_system::ptrace::{Event, Options, Stop, Tracer};
//! use spawnscope_system::{procfs, signals::ChildChanges};
//!
//! # let child = Pid(1);
//! let changes = ChildChanges::catch()?;
//! let mut tracer = Tracer::new();
//! tracer.seize(child, Options::CREATION | Options::EXEC)?;
//! while tracer.has_children() {
//!     is_readable_within(changes.readiness(), Duration::from_secs(1));
//!     changes.clear();
//!     while let Some(event) = tracer.next_event() {
//!         let Event::Stopped(thread, stop) = event else { continue };
//!         if let Stop::Exec { .. } = stop {
//!             println!("{:?}", procfs::arguments(thread));
//!         }
//!         tracer.pass_on(thread, stop);
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Uses `libc` directly: nix represents signals and statuses by an enum without real-time signals. The C library's threads send those
//! to each other, and a thread stopped by one could neither be understood nor continued.

mod entry;
mod event;
#[cfg(target_arch = "x86_64")]
pub mod identification;
pub mod refusal;
mod registers;
mod request;

use std::collections::HashSet;
use std::io;
use std::marker::PhantomData;

pub use self::entry::EntryDetour;
pub use self::event::{Creation, Event, Stop};
pub use self::registers::{CallInfo, CallStop, NATIVE, Registers};
pub use self::request::{Options, Resume};
use self::request::{interrupt, resume, seize};
use spawnscope_data::event::Pid;

/// The tracees of this thread.
#[derive(Debug, Default)]
pub struct Tracer {
    /// Threads that were seen, and are neither detached nor known to have ended. Some may be gone: an exec ends all other threads of
    /// its process without an event. Requests to threads that we do not trace fail without effect, even if their ids were reused.
    threads: HashSet<Pid>,
    is_detaching: bool,
    // Not `Send`: the kernel identifies tracers by thread.
    _of_thread: PhantomData<*const ()>,
}

impl Tracer {
    /// A tracer without tracees.
    #[must_use]
    pub fn new() -> Tracer {
        Tracer::default()
    }

    /// Starts to trace a thread, which continues to run. Other threads of its process need a call each. Threads and processes that it
    /// creates from now on are traced too if the options include `Options::CREATION`.
    ///
    /// # Errors
    /// If the kernel refuses (`refusal`).
    pub fn seize(&mut self, thread: Pid, options: Options) -> io::Result<()> {
        seize(thread, options)?;
        self.threads.insert(thread);
        Ok(())
    }

    /// The next event, without waiting; SIGCHLD signals that there may be one. Also reports the ends of other children of this thread,
    /// because one call waits for all of them. After `detach_all`, only ends are reported.
    ///
    /// If a traced child of this process ends, this reaps it, even if another thread of this process created it.
    pub fn next_event(&mut self) -> Option<Event> {
        self.event(libc::WNOHANG)
    }

    /// The next event, like `next_event`, but waits for it: one system call for each event. `None` if a signal handler interrupted the wait
    /// (`signals::ThreadWaker`), or if this thread has no tracees or other children.
    pub fn await_event(&mut self) -> Option<Event> {
        self.event(0)
    }

    fn event(&mut self, flags: i32) -> Option<Event> {
        loop {
            let (thread, status) = wait(flags)?;
            let event = Event::of(thread, status, request::message);
            match event {
                Event::Ended(thread, _) => {
                    self.threads.remove(&thread);
                }
                Event::Stopped(thread, stop) => {
                    self.note(thread, stop);
                    if self.is_detaching {
                        self.resume(thread, stop.detachment());
                        continue;
                    }
                }
            }
            return Some(event);
        }
    }

    /// Whether this thread has any tracees or other children left.
    #[must_use]
    pub fn has_children(&self) -> bool {
        let flags = libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT | libc::WNOHANG | CHILDREN;
        // SAFETY: all zeroes is a valid `siginfo_t`, which the kernel fills. WNOWAIT leaves all events to `next_event`.
        unsafe {
            let mut information: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_ALL, 0, &raw mut information, flags) == 0
        }
    }

    /// Keeps the list of threads. The stop of a new thread and the creation event of its creator arrive in any order.
    fn note(&mut self, thread: Pid, stop: Stop) {
        self.threads.insert(thread);
        match stop {
            Stop::Created { child, .. } => self.threads.extend(child),
            Stop::Exec {
                former_thread: Some(former),
            } if former != thread => {
                self.threads.remove(&former);
            }
            _ => {}
        }
    }

    /// Resumes a stopped thread.
    pub fn resume(&mut self, thread: Pid, how: Resume) {
        if matches!(how, Resume::Detach(_)) {
            self.threads.remove(&thread);
        }
        // Failure means that the thread was killed, which is its next event.
        let _ = resume(thread, how);
    }

    /// Resumes a stopped thread so that it behaves as if it were not traced.
    pub fn pass_on(&mut self, thread: Pid, stop: Stop) {
        self.resume(thread, stop.transparently());
    }

    /// Detaches from all threads. A running thread must stop first: it is interrupted, and `next_event` detaches from it when its stop is
    /// reported. A parent blocked in vfork stops only once its child has executed a program or ended. A thread that is stopped now must
    /// be resumed by the caller, who may detach from it (`Resume::Detach`).
    pub fn detach_all(&mut self) {
        self.is_detaching = true;
        self.interrupt_all();
    }

    /// Stops all running threads, whose stops are then reported. A caller that has changed a thread undoes this there, and detaches.
    pub fn interrupt_all(&self) {
        for thread in &self.threads {
            let _ = interrupt(*thread);
        }
    }
}

/// Which children a wait covers. __WALL: also threads, and children whose end does not send SIGCHLD. __WNOTHREAD: not the children of
/// other threads, whose statuses those threads expect.
const CHILDREN: i32 = libc::__WALL | libc::__WNOTHREAD;

/// The next change of a tracee or child of this thread; `None` if there is none, or no such thread.
fn wait(flags: i32) -> Option<(Pid, i32)> {
    let mut status = 0;
    // SAFETY: `status` has room for a status.
    let thread = unsafe { libc::waitpid(-1, &raw mut status, CHILDREN | flags) };
    (thread > 0).then_some((Pid(thread), status))
}

#[cfg(test)]
mod tests;
