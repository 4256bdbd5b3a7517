//! The tracing thread: waits for events of traced threads, and releases all of them at the end.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use spawnscope_data::event::{Event, EventKind, LaunchId, Nanos, Pid, TaskId};
use spawnscope_system::ids::IdMap;
use spawnscope_system::process::wait_until;
use spawnscope_system::ptrace::{
    Event as Traced, ExecPoint, Options, Resume, Stop, Tracer, Tracers, named_processes, stop_cost,
};
use spawnscope_system::signals::ChildChanges;
use spawnscope_system::{clock, procfs};

use super::counters;
use super::launchers::Launchers;
use super::lines::Interpreters;
use super::processes::{Process, Processes};
use super::programs::{self, Privileges};
use super::setup::Setup;
use super::shared::{Shared, lock};
use super::stop_times::StopTimes;
use super::waits::Waits;
use crate::untraced::UntracedProcesses;
use crate::{ROOT, Settings};

/// Time without an event after which threads that stopped before their creation was reported
/// (`early`) are recorded without it.
const IDLE_TIMEOUT: Duration = Duration::from_millis(100);

/// How long the thread still handles pending events once it should detach. New events must not
/// prevent it from detaching.
const LAST_EVENTS_TIMEOUT: Duration = Duration::from_millis(50);

pub(super) struct Tracing {
    pub(super) tracer: Tracer,
    pub(super) processes: Processes,
    /// Threads that stopped before their creation was reported, and the times of these stops. They
    /// stay stopped until it is reported.
    pub(super) early: IdMap<Pid, Nanos>,
    pub(super) interpreters: Interpreters,
    pub(super) tracers: Tracers,
    /// The threads that launch, and how they wait for their children.
    pub(super) waits: Waits,
    /// The threads that may launch, whose system calls are traced if the settings request it.
    pub(super) launchers: Launchers,
    pub(super) untraced: UntracedProcesses,
    pub(super) traces_setup: bool,
    pub(super) counts_waits: bool,
    pub(super) keeps_privilege: bool,
    pub(super) privileges: Privileges,
    /// The paths of programs and interpreters that have executed another program in their place.
    /// They stop when they begin, because their memory is gone when the exec is seen.
    pub(super) replaced: HashSet<Vec<u8>>,
    /// Where programs call execve, as seen so far.
    pub(super) exec_points: Vec<ExecPoint>,
    pub(super) stop_times: StopTimes,
    pub(super) shared: Arc<Shared>,
    children: ChildChanges,
    events: Vec<Event>,
    next_id: u64,
    pub(super) is_detaching: bool,
}

impl Tracing {
    /// Starts to trace the held command.
    ///
    /// Does not set `Options::KILL_ON_EXIT`, so that the command continues untraced if the recorder
    /// is killed.
    pub(super) fn seize(
        command: Pid,
        shared: Arc<Shared>,
        children: ChildChanges,
        settings: &Settings,
        interpreters: Interpreters,
    ) -> io::Result<Tracing> {
        let mut tracer = Tracer::new();
        let options = Options::CREATION | Options::EXEC | Options::EXITING | Options::SYSTEM_CALLS;
        tracer.seize(command, options)?;
        let mut processes = Processes::default();
        let setup = settings.failed_execs.then(Setup::default);
        processes.add_process(ROOT, Process { setup, ..Process::new(command) });
        if settings.failed_execs {
            // System calls are traced from a stop on. The kernel restarts the held command's read.
            tracer.interrupt_all();
        }
        Ok(Tracing {
            tracer,
            processes,
            early: IdMap::default(),
            interpreters,
            tracers: Tracers::default(),
            waits: Waits::default(),
            launchers: Launchers::new(settings.launcher_calls),
            untraced: UntracedProcesses::default(),
            traces_setup: settings.failed_execs,
            counts_waits: counters::are_counted(),
            privileges: Privileges::default(),
            keeps_privilege: programs::traced_programs_keep_privilege(),
            replaced: HashSet::new(),
            exec_points: Vec::new(),
            stop_times: StopTimes::new(stop_cost::measure().unwrap_or_default()),
            shared,
            children,
            events: Vec::new(),
            next_id: ROOT.0 + 1,
            is_detaching: false,
        })
    }

    pub(super) fn run(mut self) {
        let mut deadline = None;
        while !self.is_over() {
            // Read this before the events, because what happened before the request belongs to the
            // recording.
            let should_detach = self.shared.should_detach.load(Ordering::Acquire);
            let asked = clock::now();
            let event = if should_detach { self.tracer.next_event() } else { self.await_event() };
            let is_idle = event.is_none() && !self.wait();
            let seen = clock::now();
            self.stop_times.got_event(asked, seen);
            self.handle_event(event, seen);
            self.stop_times.handled(seen, clock::now());
            for (launch, ended) in self.untraced.ended() {
                let gone = EventKind::Gone { zombie: Some(ended), auto_reaped: false, cpu: None };
                self.report(ended, launch, TaskId(launch.0), gone);
            }
            if should_detach
                && !self.is_detaching
                && (event.is_none()
                    || Instant::now() >= *deadline.get_or_insert_with(|| Instant::now() + LAST_EVENTS_TIMEOUT))
            {
                self.begin_to_detach();
            }
            if is_idle || self.is_detaching {
                self.adopt_early();
            }
            self.shared.send(&mut self.events);
        }
    }

    fn handle_event(&mut self, event: Option<Traced>, seen: Nanos) {
        match event {
            Some(Traced::Stopped(thread, stop)) => {
                self.waits.stopped = Some((thread, self.stop_times.begin(thread, seen)));
                self.handle_stop(thread, stop);
            }
            Some(Traced::Ended(thread, status)) => {
                self.waits.stopped = None;
                self.handle_end(thread, status);
            }
            None => self.children.clear(),
        }
    }

    fn begin_to_detach(&mut self) {
        self.report_all_launched();
        for launch in self.processes.launches() {
            self.report_load(launch, false);
        }
        self.events.extend(self.stop_times.take_all());
        self.is_detaching = true;
        self.tracer.interrupt_all();
    }

    fn is_over(&self) -> bool {
        self.processes.is_empty() && self.early.is_empty() && (self.is_detaching || self.untraced.is_empty())
    }

    /// Returns the next event. Waits for it in a single system call if there is nothing else to
    /// wait for.
    fn await_event(&mut self) -> Option<Traced> {
        if self.early.is_empty() && self.untraced.is_empty() {
            self.tracer.await_event()
        } else {
            self.tracer.next_event()
        }
    }

    /// Waits for a change. Returns `false` if there was none within `IDLE_TIMEOUT`.
    fn wait(&self) -> bool {
        let mut watched = vec![self.children.readiness()];
        if !self.is_detaching {
            watched.push(self.shared.wake.as_fd());
            watched.extend(self.untraced.readiness());
        }
        let mut polled: Vec<_> = watched.into_iter().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        wait_until(&mut polled, Instant::now() + IDLE_TIMEOUT)
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    pub(super) fn report(&mut self, at: Nanos, launch: LaunchId, task: TaskId, kind: EventKind) {
        if !self.is_detaching {
            if !matches!(kind, EventKind::Called(_)) {
                self.events.extend(self.stop_times.take(task));
            }
            self.events.push(Event { at, launch, task, kind });
        }
    }

    /// Notes that a stopped thread continues.
    fn end_stop(&mut self, tid: Pid) {
        let now = clock::now();
        if let Some(thread) = self.processes.thread(tid).filter(|_| !self.is_detaching)
            && let Some((off, earlier)) = self.stop_times.end(tid, thread, now)
        {
            self.events.extend(earlier);
            self.waits.on_resumed(tid, now, off);
        }
    }

    /// Passes a notice to the user, unless the same notice was already passed.
    pub(super) fn notify(&mut self, notice: String) {
        let mut notices = lock(&self.shared.notices);
        if !notices.contains(&notice) {
            notices.push(notice);
        }
    }

    pub(super) fn notify_of_privilege(&mut self, name: &str) {
        self.notify(format!(
            "{name} would lose its privilege if it were traced: only its start and end are recorded, not what it launches (to record \
             everything, use eBPF: run spawnscope with sudo)"
        ));
    }

    pub(super) fn resume(&mut self, thread: Pid, stop: Stop) {
        if self.is_detaching {
            self.release(thread, stop);
            return;
        }
        self.end_stop(thread);
        let traces_calls = self.processes.process_of(thread).is_some_and(|process| process.has_traced_calls());
        let traces_calls = traces_calls || self.launchers.is_watched(thread);
        let how = match stop.transparent_resume() {
            Resume::Continue(signal) if traces_calls => Resume::ToSystemCall(signal),
            other => other,
        };
        self.tracer.resume(thread, how);
    }

    /// Detaches from a stopped thread. If its loader has not finished yet, the end of loading
    /// remains unknown.
    fn release(&mut self, thread: Pid, stop: Stop) {
        self.remove_detour(thread);
        self.end_stop(thread);
        self.forget(thread);
        self.tracer.resume(thread, stop.transparent_detach());
    }

    fn forget(&mut self, thread: Pid) {
        self.processes.remove(thread);
        self.waits.forget(thread);
        self.stop_times.forget(thread, clock::now());
        self.launchers.forget(thread);
    }

    /// Releases a tracer that has just executed its program. It waits until the processes that its
    /// arguments name are released, too.
    pub(super) fn leave_tracer(&mut self, tracer: Pid, name: &str) {
        self.notify(format!(
            "{name} traces processes itself (or its leak sanitizer does), but a process can have only one tracer: what {name} launches is not \
             recorded (to record it, use eBPF: run spawnscope with sudo)"
        ));
        for target in named_processes(&procfs::arguments(tracer)).filter(|target| *target != tracer) {
            let Some(traced) = self.processes.thread(target) else { continue };
            // If this fails, the end of the process stays unknown.
            let _ = self.untraced.add(target, traced.launch);
            for thread in self.tracer.let_go(target) {
                self.forget(thread);
            }
            self.notify(format!(
                "{name} traces process {}, but a process can have only one tracer: from now on it is not recorded",
                target.0
            ));
        }
        if let Some(traced) = self.processes.thread(tracer) {
            let _ = self.untraced.add(tracer, traced.launch);
        }
        self.forget(tracer);
        self.tracer.detach_after_others(tracer);
    }

    /// Releases a process that fails or hangs while it is traced. The recording continues.
    pub(super) fn leave_untraced(&mut self, thread: Pid, stop: Stop) {
        let Some(traced) = self.processes.thread(thread) else {
            return;
        };
        // If this fails, the end of the process stays unknown.
        let _ = self.untraced.add(thread, traced.launch);
        self.release(thread, stop);
    }
}
