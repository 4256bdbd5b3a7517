//! The tracing thread: waits for events of traced threads, and releases all of them at the end.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use spawnscope_data::event::{Event, EventKind, LaunchId, Nanos, Pid, TaskId};
use spawnscope_system::process::wait_until;
use spawnscope_system::ptrace::{Event as Traced, Options, Resume, Stop, Tracer};
use spawnscope_system::signals::ChildChanges;

use super::launchers::Launchers;
use super::lines::Interpreters;
use super::processes::{Process, Processes, Setup};
use super::tracers::Tracers;
use super::waits::{self, Waits};
use super::{Shared, lock, programs};
use crate::untraced::Untraced;
use crate::{ROOT, Settings};

/// After this time without an event, states that no event reports are checked.
const IDLE: Duration = Duration::from_millis(100);

/// How long the events that are there at the end may keep the thread. New ones must not keep it for ever.
const LAST_EVENTS: Duration = Duration::from_millis(50);

/// Which system calls stop their thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedCalls {
    /// Those of a new process before its exec.
    pub(super) setup: bool,
    /// Those of threads that may launch.
    pub(super) launchers: bool,
}

impl TracedCalls {
    pub(super) fn of(settings: &Settings) -> TracedCalls {
        TracedCalls {
            setup: settings.failed_execs,
            launchers: settings.launcher_calls,
        }
    }
}

/// All state of the tracing thread.
pub(super) struct Tracing {
    pub(super) tracer: Tracer,
    pub(super) processes: Processes,
    /// Threads that stopped before their creation was reported, and when. They stay stopped until it is.
    pub(super) early: HashMap<Pid, Nanos>,
    /// The programs that run scripts.
    pub(super) interpreters: Interpreters,
    /// The programs that trace others.
    pub(super) tracers: Tracers,
    /// The threads that launch, and how they wait for their children.
    pub(super) waits: Waits,
    /// The system calls of threads that launch, if the user asked for them.
    pub(super) launchers: Launchers,
    /// Processes that were released and still run.
    pub(super) untraced: Untraced,
    /// Whether to trace the system calls before an exec.
    pub(super) traces_setup: bool,
    /// Whether the kernel counts how long threads wait for a CPU.
    pub(super) counts_waits: bool,
    /// Whether set-user-ID programs keep their privilege while they are traced.
    pub(super) keeps_privilege: bool,
    shared: Arc<Shared>,
    children: ChildChanges,
    events: Vec<Event>,
    next_id: u64,
    pub(super) is_detaching: bool,
}

impl Tracing {
    /// Starts to trace the command, which is held.
    ///
    /// Without `Options::KILL_ON_EXIT`: if the recorder is killed, the command continues untraced.
    pub(super) fn seize(
        command: Pid,
        shared: Arc<Shared>,
        children: ChildChanges,
        calls: TracedCalls,
        interpreters: Interpreters,
    ) -> io::Result<Tracing> {
        let mut tracer = Tracer::new();
        let options = Options::CREATION | Options::EXEC | Options::EXITING | Options::SYSTEM_CALLS;
        tracer.seize(command, options)?;
        let mut processes = Processes::default();
        let setup = calls.setup.then(Setup::default);
        processes.add_process(
            ROOT,
            Process {
                setup,
                ..Process::new(command)
            },
        );
        if calls.setup {
            // A thread must be stopped before its system calls can be traced. The held command blocks in a read, which the kernel restarts.
            tracer.interrupt_all();
        }
        Ok(Tracing {
            tracer,
            processes,
            early: HashMap::new(),
            interpreters,
            tracers: Tracers::default(),
            waits: Waits::default(),
            launchers: Launchers::new(calls.launchers),
            untraced: Untraced::default(),
            traces_setup: calls.setup,
            counts_waits: waits::are_counted(),
            keeps_privilege: programs::keep_privilege(),
            shared,
            children,
            events: Vec::new(),
            next_id: ROOT.0 + 1,
            is_detaching: false,
        })
    }

    /// Traces until nothing is left to trace.
    pub(super) fn run(mut self) {
        let mut last = None;
        while !self.is_over() {
            // Read before the events: what happened before the request belongs to the recording.
            let should_detach = self.shared.should_detach.load(Ordering::Acquire);
            let event = if should_detach {
                self.tracer.next_event()
            } else {
                self.await_event()
            };
            let is_idle = event.is_none() && !self.wait();
            match event {
                Some(Traced::Stopped(thread, stop)) => self.stopped(thread, stop),
                Some(Traced::Ended(thread, status)) => self.ended(thread, status),
                None => self.children.clear(),
            }
            for (launch, ended) in self.untraced.ended() {
                self.report_end_of_untraced(launch, ended);
            }
            if should_detach
                && !self.is_detaching
                && (event.is_none() || Instant::now() >= *last.get_or_insert_with(|| Instant::now() + LAST_EVENTS))
            {
                self.report_all_launched();
                self.is_detaching = true;
                self.tracer.interrupt_all();
            }
            if is_idle || self.is_detaching {
                self.adopt_early();
            }
            self.shared.send(&mut self.events);
        }
    }

    fn is_over(&self) -> bool {
        self.processes.is_empty() && self.early.is_empty() && (self.is_detaching || self.untraced.is_empty())
    }

    /// The next event. Waits for it in one system call if nothing else can happen that matters.
    fn await_event(&mut self) -> Option<Traced> {
        if self.early.is_empty() && self.untraced.is_empty() {
            self.tracer.await_event()
        } else {
            self.tracer.next_event()
        }
    }

    /// Waits for a change; `false` if there was none for a while.
    fn wait(&self) -> bool {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut watched = vec![readable(self.children.readiness())];
        if !self.is_detaching {
            watched.push(readable(self.shared.wake.as_fd()));
            watched.extend(self.untraced.readiness().map(readable));
        }
        wait_until(&mut watched, Instant::now() + IDLE)
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Reports an event, unless the recording is over.
    pub(super) fn report(&mut self, at: Nanos, launch: LaunchId, task: TaskId, kind: EventKind) {
        if !self.is_detaching {
            self.events.push(Event { at, launch, task, kind });
        }
    }

    /// Passes a notice to the user, unless the same notice was already passed.
    pub(super) fn notify(&mut self, notice: String) {
        let mut notices = lock(&self.shared.notices);
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    pub(super) fn note_command_status(&mut self, status: i32) {
        *lock(&self.shared.command_status) = Some(status);
    }

    /// Lets a stopped thread continue.
    pub(super) fn resume(&mut self, thread: Pid, stop: Stop) {
        if self.is_detaching {
            self.release(thread, stop);
            return;
        }
        let traces_calls = self
            .processes
            .of(thread)
            .is_some_and(|process| process.makes_visible_calls());
        let traces_calls = traces_calls || self.launchers.is_watched(thread);
        let how = match stop.transparently() {
            Resume::Continue(signal) if traces_calls => Resume::ToSystemCall(signal),
            other => other,
        };
        self.tracer.resume(thread, how);
    }

    /// Detaches from a stopped thread. If its loader has not reached the detour yet, the detour will have no effect.
    fn release(&mut self, thread: Pid, stop: Stop) {
        self.processes.remove(thread);
        self.waits.forget(thread);
        self.launchers.forget(thread);
        self.tracer.resume(thread, stop.detachment());
    }

    /// Releases a process that does not work while it is traced. The recording continues.
    pub(super) fn leave_untraced(&mut self, thread: Pid, stop: Stop) {
        let Some(traced) = self.processes.thread(thread) else {
            return;
        };
        // If it cannot be watched, its end stays unknown.
        let _ = self.untraced.add(thread, traced.launch);
        self.release(thread, stop);
    }

    fn report_end_of_untraced(&mut self, launch: LaunchId, at: Nanos) {
        let gone = EventKind::Gone {
            zombie: Some(at),
            auto_reaped: false,
            cpu: None,
        };
        self.report(at, launch, TaskId(launch.0), gone);
    }
}
