//! New processes and threads. The creator's event and the first stop of the new process or thread
//! arrive in either order.

use std::path::Path;
use std::sync::Arc;

use spawnscope_data::event::{Chain, EventKind, LaunchId, Launched, Mechanism, Nanos, Pid, TaskId};
use spawnscope_system::ptrace::{Creation, Registers, Stop};
use spawnscope_system::{clock, memory, procfs};

use super::first_stop::FirstStop;
use super::lines::{self, Creator};
use super::processes::{Process, Thread};
use super::setup::Setup;
use super::tracing::Tracing;
use crate::clone_call::{CLONE_VM, CloneCall};

/// Minimum CPU time of a parent since its last stop after which its memory is measured.
const MIN_SLOW_CREATION: Nanos = Nanos(500_000);
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_PARENT: u64 = 0x8000;
/// Offsets in `struct clone_args`, in bytes.
const CLONE3_FLAGS: usize = 0;
const CLONE3_STACK: usize = 40;

impl Tracing {
    pub(super) fn handle_creation(&mut self, creator: Pid, how: Creation, child: Option<Pid>) {
        let at = self.stop_times.begin(creator, clock::now());
        let (Some(child), Some(parent)) = (child, self.processes.thread(creator)) else {
            // The creator was killed. If there is a child, `adopt_early` starts it.
            return;
        };
        self.report_load(parent.launch, false);
        self.report_idle(creator, parent, at, None);
        self.report_own_call_site(creator, parent);
        let is_native = self.processes.process(parent.launch).is_none_or(|process| process.is_native);
        let call = is_native.then(|| clone_call(creator)).flatten();
        let is_thread = match call {
            Some(call) => call.flags & CLONE_THREAD != 0,
            None => how == Creation::Clone && is_thread_of(creator, child),
        };
        if is_thread {
            self.add_thread(at, parent, child);
        } else {
            let process = Process { is_native, ..Process::new(child) };
            self.add_child(at, creator, parent, process, call);
        }
        self.start_early(child);
    }

    fn add_child(&mut self, at: Nanos, creator: Pid, parent: Thread, mut process: Process, call: Option<CloneCall>) {
        let child = process.pid;
        process.shares_memory = call.is_some_and(CloneCall::is_spawn);
        // The memory of a process that runs beside its creator must not be changed.
        let is_separate = call.is_some_and(|call| call.flags & CLONE_VM == 0);
        process.creator = (process.shares_memory || is_separate).then_some(parent.launch);
        let mut parent_rss_bytes = None;
        if let Some(parent) = self.processes.process(parent.launch) {
            (process.execs, process.is_filtered) = (parent.execs, parent.is_filtered);
            let since_begun = || Some(self.stop_times.cpu_time_of(parent.pid)?.since(parent.begun?.1));
            let worked = self.waits.on_launch(parent.pid, creator, child, process.shares_memory).or_else(since_begun);
            // Only a large parent creates slowly.
            let may_be_large =
                is_separate && !process.shares_memory && worked.is_none_or(|worked| worked >= MIN_SLOW_CREATION);
            parent_rss_bytes = may_be_large.then(|| procfs::resident_bytes(parent.pid)).flatten();
        }
        let create = self.launchers.on_launch(creator);
        let launch = self.add_launch(at, Some(parent), process, call, create);
        if let Some((_, launched)) = self.processes.process(launch).and_then(|process| process.created.as_mut()) {
            launched.parent_rss_bytes = parent_rss_bytes;
        }
        // Reading the creator's memory takes time. Only a process on the creator's stack would
        // change what is read.
        if call.is_some_and(|call| is_separate || !call.shares_stack) && !self.is_asked_later(parent.launch) {
            self.start_early(child);
        }
        if let Some(chain) = call.and_then(|call| self.find_call_site(creator, parent.launch, call, launch)) {
            self.report(at, launch, TaskId(launch.0), EventKind::Called(Arc::new(chain)));
        }
    }

    /// Starts a new thread or process if it has stopped already.
    fn start_early(&mut self, tid: Pid) {
        if self.early.remove(&tid).is_some() {
            self.handle_start(tid);
        }
    }

    /// Whether new processes of this one may have to stop until their script line is known.
    fn is_asked_later(&mut self, parent: LaunchId) -> bool {
        self.processes.process(parent).is_some_and(|parent| parent.program.is_asked_later())
    }

    /// Returns the script line that requested the launch, if it is already known. Copies the
    /// creator's program to the new process.
    fn find_call_site(&mut self, thread: Pid, parent: LaunchId, call: CloneCall, child: LaunchId) -> Option<Chain> {
        let parent = self.processes.process(parent)?;
        let creator = Creator {
            process: parent.pid,
            thread,
            program: &mut parent.program,
            shell: parent.shell,
            is_spawn: call.is_spawn(),
        };
        let (chain, shell) = lines::call_site(&mut self.interpreters, creator);
        let program = parent.program.clone();
        if shell.is_pending() {
            parent.program.prepare_forks(parent.pid);
        }
        if let Some(child) = self.processes.process(child) {
            (child.program, child.shell) = (program, shell);
        }
        chain
    }

    fn add_thread(&mut self, at: Nanos, parent: Thread, tid: Pid) {
        let task = TaskId(self.new_id());
        self.processes.add_thread(tid, parent.launch, task);
        self.launchers.watch(tid);
        let started = EventKind::ThreadStarted { tid, creator: parent.task };
        self.report(at, parent.launch, task, started);
    }

    fn add_launch(
        &mut self,
        at: Nanos,
        parent: Option<Thread>,
        mut process: Process,
        call: Option<CloneCall>,
        create: Option<Nanos>,
    ) -> LaunchId {
        let launch = LaunchId(self.new_id());
        let pid = process.pid;
        process.setup = self.traces_setup.then(Setup::default);
        self.processes.add_process(launch, process);
        self.launchers.watch(pid);
        let Some(Thread { launch: parent, task: parent_task, .. }) = parent else {
            return launch;
        };
        let has_other_parent = call.is_none_or(|call| call.flags & CLONE_PARENT != 0);
        let launched = Launched {
            parent,
            parent_task,
            pid,
            reaper: (!has_other_parent).then_some(parent),
            pid_for_reaper: pid,
            mechanism: call.and_then(CloneCall::mechanism),
            create,
            ..Launched::default()
        };
        if let Some(process) = self.processes.process(launch) {
            process.created = Some((at, launched));
        }
        launch
    }

    /// Handles a new thread, which is stopped before its first instruction.
    pub(super) fn handle_start(&mut self, tid: Pid) {
        if let Some(thread) = self.processes.thread_mut(tid) {
            thread.is_new = false;
        }
        if let Some(thread) = self.processes.thread(tid)
            && thread.task == TaskId(thread.launch.0)
        {
            self.report_start(tid, thread.launch);
        }
        self.resume(tid, Stop::Interrupted);
    }

    fn report_start(&mut self, pid: Pid, launch: LaunchId) {
        let counts_waits = self.counts_waits;
        let Some(process) = self.processes.process(launch) else {
            return;
        };
        let launched = process.created.as_ref().map(|(_, launched)| (launched.parent, launched.mechanism));
        process.shell.await_command(pid, &mut process.program);
        let is_detoured = !self.launchers.is_watched(pid) && self.detour_exec(pid, launch).is_some();
        if let Some((creator, Some(Mechanism::PosixSpawn | Mechanism::Vfork))) = launched
            && !is_detoured
            && !self.launchers.is_watched(pid)
        {
            let known = self.processes.process(creator).and_then(|creator| creator.child_keeps_signal);
            if let Some(setup) = self.processes.process(launch).and_then(|process| process.setup.as_mut()) {
                setup.seek_unblocking(pid, creator, known);
            }
        }
        let Some(process) = self.processes.process(launch) else {
            return;
        };
        let created = process.created.as_ref().map(|(at, _)| *at);
        process.first_stop = created.filter(|_| counts_waits).map(|created| FirstStop { created });
        process.first_run = process.first_stop.is_none().then(clock::now);
        process.begun = created.map(|created| (created, Nanos(0)));
        self.report_launched(launch);
    }

    /// Reports the creation of a process, unless it was reported before.
    pub(super) fn report_launched(&mut self, launch: LaunchId) {
        let created = self.processes.process(launch).and_then(|process| process.created.take());
        if let Some((at, launched)) = created {
            self.report(at, launch, TaskId(launch.0), EventKind::Launched(launched));
        }
    }

    pub(super) fn report_all_launched(&mut self) {
        for launch in self.processes.launches() {
            self.report_launched(launch);
        }
    }

    /// Starts threads whose creation is never reported, because their creator was killed.
    pub(super) fn adopt_early(&mut self) {
        for (tid, at) in std::mem::take(&mut self.early) {
            if procfs::status_field(tid, "Tgid").is_some_and(|process| process == tid.0.to_string()) {
                // Its creator is unknown, so the recording shows the process as an orphan.
                self.add_launch(at, None, Process::new(tid), None, None);
            }
            self.handle_start(tid);
        }
    }
}

/// Returns the call by which a stopped thread creates a process or thread; `None` if the thread was
/// killed.
fn clone_call(creator: Pid) -> Option<CloneCall> {
    let registers = Registers::read(creator).ok()?;
    let (number, [first, second]) = registers.system_call();
    let (flags, stack) = match number {
        libc::SYS_clone => (first, second),
        libc::SYS_clone3 => {
            let arguments = memory::read(creator, first, CLONE3_STACK + 8);
            let [flags, stack] = [CLONE3_FLAGS, CLONE3_STACK].map(|at| arguments.get(at..)?.first_chunk().copied());
            (u64::from_ne_bytes(flags?), u64::from_ne_bytes(stack?))
        }
        _ => (0, 0),
    };
    // For vfork, glibc on aarch64 passes its own stack pointer to clone.
    let shares_stack = stack == 0 || number == libc::SYS_clone && stack == registers.stack_pointer();
    Some(CloneCall { number, flags, shares_stack })
}

fn is_thread_of(creator: Pid, tid: Pid) -> bool {
    Path::new(&format!("/proc/{}/task/{}", creator.0, tid.0)).exists()
}
