//! Which system calls of a new process are traced before its exec. A child of posix_spawn makes
//! about 130 of them while it blocks all signals, and unblocks them just before its exec. It stops
//! only at that moment (`spawnscope_system::ptrace::unblocking`) and at the calls after it, among
//! which are all of its execs.
//!
//! A better way, once an exec has shown by which instruction of which file programs execute others:
//! the child stops only when it enters this call, and when the call has failed
//! (`spawnscope_system::ptrace::ExecDetour`).

use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_system::memory;
use spawnscope_system::ptrace::unblocking::{
    blocks_all_signals, changes_mask, is_unblocking, mask_query, passes_signal, passes_through, sets_signal,
    stop_at_unblocking, stop_at_unblocking_after_query,
};
use spawnscope_system::ptrace::{CallInfo, CallStop, DetouredCall, ExecDetour, ExecFacts, ExecPoint};

use super::filters;
use super::image::MAX_PATH;
use super::processes::{Executes, Thread};
use super::tracing::Tracing;

/// The state of tracing the system calls of a new process up to its exec, or of a program up to its
/// exec of another one.
#[derive(Debug)]
pub(super) struct Setup {
    /// Number of stops after which the calls are no longer traced. A forked process that never
    /// executes a program must not be slowed down at each of its system calls.
    pub(super) stops_left: u32,
    /// The `execve` call that has been entered and has not returned.
    pub(super) exec: Option<ExecCall>,
    /// What the process knows about the exec that it enters.
    pub(super) facts: Option<ExecFacts>,
    unblocking: Unblocking,
}

#[derive(Debug)]
pub(super) struct ExecCall {
    pub(super) enter: Nanos,
    pub(super) enter_cpu: Option<Nanos>,
    pub(super) path: Vec<u8>,
    pub(super) facts: Option<ExecFacts>,
}

impl ExecCall {
    /// The call that a thread leaves in a detour, in which it has not stopped at the entry, because
    /// there is no file.
    fn left(tid: Pid, call: &DetouredCall) -> Option<ExecCall> {
        let (enter, path) = call.entry(tid)?;
        let path = memory::read_string(tid, path, MAX_PATH).unwrap_or_default();
        Some(ExecCall { enter, enter_cpu: None, path, facts: None })
    }
}

/// How the children of a process stop before their exec.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum ExecStops {
    /// The process has not launched anything yet.
    #[default]
    Unknown,
    /// The process contains no known call of execve. Its next child will show one.
    Sought,
    Detour {
        detour: ExecDetour,
        is_installed: bool,
    },
    /// By system calls, because the detour was impossible, or an exec has bypassed it. It may still
    /// be installed.
    Calls(Option<ExecDetour>),
}

impl ExecStops {
    fn new(detour: ExecDetour) -> ExecStops {
        ExecStops::Detour { detour, is_installed: false }
    }

    pub(super) fn installed(self) -> Option<ExecDetour> {
        match self {
            ExecStops::Detour { detour, is_installed: true } => Some(detour),
            ExecStops::Calls(detour) => detour,
            ExecStops::Detour { .. } | ExecStops::Sought | ExecStops::Unknown => None,
        }
    }
}

/// Whether the process stops when it unblocks its signals, instead of at each call before that.
#[derive(Debug)]
enum Unblocking {
    /// It does not, or it has already unblocked them.
    Past,
    /// Its calls are traced until a pending signal would stay pending.
    Sought(Sought),
    /// The signal is pending.
    Awaited {
        creator: LaunchId,
        /// The first call of this process, if none of its calls so far would have discarded a
        /// pending signal.
        keeps_from: Option<libc::c_long>,
    },
    /// The process stops only in an `ExecDetour`.
    Detoured,
}

#[derive(Debug)]
struct Sought {
    creator: LaunchId,
    /// The first call of an earlier child of the creator that has kept the signal from its first
    /// call on.
    known: Option<libc::c_long>,
    first_call: Option<libc::c_long>,
    /// Where the current call stores the mask of blocked signals, if it is the first call and does
    /// nothing else.
    query: Option<u64>,
    /// Whether a call has set the action of the signal.
    has_set: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { stops_left: 400, exec: None, facts: None, unblocking: Unblocking::Past }
    }
}

impl Setup {
    /// Call at the first stop of a process that shares its creator's memory, so that it only
    /// prepares an exec. `known`: the creator's `child_keeps_signal`.
    pub(super) fn seek_unblocking(&mut self, process: Pid, creator: LaunchId, known: Option<libc::c_long>) {
        if blocks_all_signals(process) {
            let sought = Sought { creator, known, first_call: None, query: None, has_set: false };
            self.unblocking = Unblocking::Sought(sought);
        }
    }

    /// Whether the process stops at its system calls.
    pub(super) fn has_traced_calls(&self) -> bool {
        !self.awaits_unblocking() && !self.is_detoured()
    }

    pub(super) fn is_detoured(&self) -> bool {
        matches!(self.unblocking, Unblocking::Detoured)
    }

    /// Whether the process will stop when it unblocks its signals.
    pub(super) fn awaits_unblocking(&self) -> bool {
        matches!(self.unblocking, Unblocking::Awaited { .. })
    }

    pub(super) fn on_entry(&mut self, process: Pid, number: libc::c_long, arguments: &[u64; 6]) {
        let Unblocking::Sought(sought) = &mut self.unblocking else {
            return;
        };
        let is_first = sought.first_call.is_none();
        let first_call = *sought.first_call.get_or_insert(number);
        if is_first && let Some(address) = mask_query(number, arguments) {
            sought.query = Some(address);
        } else if changes_mask(number, arguments) {
            self.unblocking = Unblocking::Past;
        } else if is_first && sought.known == Some(number) || passes_signal(number, arguments) {
            if stop_at_unblocking(process) {
                let keeps_from = (!sought.has_set).then_some(first_call);
                self.unblocking = Unblocking::Awaited { creator: sought.creator, keeps_from };
            }
        } else {
            sought.has_set |= sets_signal(number, arguments);
        }
    }

    pub(super) fn on_exit(&mut self, process: Pid) {
        if let Unblocking::Sought(sought) = &mut self.unblocking
            && let Some(address) = sought.query.take()
            && stop_at_unblocking_after_query(process, address)
        {
            self.unblocking = Unblocking::Awaited { creator: sought.creator, keeps_from: None };
        }
    }

    /// Call when the process has unblocked its signals. Returns the creator and its
    /// `child_keeps_signal`.
    fn on_unblocked(&mut self) -> Option<(LaunchId, Option<libc::c_long>)> {
        match std::mem::replace(&mut self.unblocking, Unblocking::Past) {
            Unblocking::Awaited { creator, keeps_from } => Some((creator, keeps_from)),
            _ => None,
        }
    }

    /// The creator of a process that has executed a program without having stopped when it
    /// unblocked its signals.
    pub(super) fn creator_to_forget(&self) -> Option<LaunchId> {
        match self.unblocking {
            Unblocking::Awaited { creator, .. } => Some(creator),
            _ => None,
        }
    }
}

impl Tracing {
    /// Returns whether the signal is the tracer's own, by which a process stops when it unblocks
    /// its signals. It must not be delivered.
    pub(super) fn handle_unblocking(&mut self, tid: Pid, thread: Thread, signal: i32) -> bool {
        let Some(process) = self.processes.process(thread.launch) else {
            return false;
        };
        if process.pid != tid {
            return false;
        }
        let is_awaited = process.setup.as_ref().is_some_and(|setup| !setup.has_traced_calls());
        if !(is_awaited || process.blocked_signals.is_some()) || !is_unblocking(tid, signal) {
            return false;
        }
        if let Some(blocked) = process.blocked_signals.take() {
            blocked.restore(tid);
        }
        if let Some((creator, keeps_from)) = process.setup.as_mut().and_then(Setup::on_unblocked)
            && let Some(creator) = self.processes.process(creator)
        {
            creator.child_keeps_signal = keeps_from;
        }
        true
    }

    /// Returns the call that a thread enters or leaves, if it has stopped by this signal in a
    /// detour of its process. The signal must then not be delivered.
    pub(super) fn detoured_call(&mut self, tid: Pid, thread: Thread, signal: i32) -> Option<CallStop> {
        let process = self.processes.process(thread.launch)?;
        let call = process.execs.installed()?.call_at(tid, signal)?;
        let is_first_thread = process.pid == tid;
        if let Some(setup) = &mut process.setup {
            match call.stop {
                CallStop::Neither => setup.unblocking = Unblocking::Past,
                CallStop::Enters(..) => {
                    setup.facts = call.facts(tid);
                    if let Some(facts) = &setup.facts {
                        self.stop_times.begin_earlier(tid, facts.entered);
                    }
                }
                CallStop::Leaves(_) if is_first_thread && setup.exec.is_none() => {
                    setup.exec = ExecCall::left(tid, &call);
                }
                CallStop::Leaves(_) => {}
            }
        }
        Some(call.stop)
    }

    /// Lets a new process stop only at its execs instead of at all its system calls, if this is
    /// possible. Call before it runs. Other children may use a detour in memory that the process
    /// shares, so it stays there.
    pub(super) fn detour_exec(&mut self, pid: Pid, launch: LaunchId) -> Option<()> {
        let process = self.processes.process(launch)?;
        let (shares_memory, has_copy) = (process.shares_memory, process.execs.installed().is_some());
        let creator = process.creator.filter(|_| process.setup.is_some())?;
        let ExecStops::Detour { detour, is_installed } = self.exec_stops_of_children(pid, creator)? else {
            return None;
        };
        // Otherwise the process would not stop in the detour, because it blocks the signal until
        // its exec.
        if !passes_through(pid) {
            return None;
        }
        if !(if shares_memory { is_installed } else { has_copy }) {
            if shares_memory && self.processes.count_in_memory_of(creator) > 1 {
                return None;
            }
            detour.install(pid).ok()?;
        }
        let installed = ExecStops::Detour { detour, is_installed: true };
        if shares_memory {
            self.processes.process(creator)?.execs = installed;
        }
        let process = self.processes.process(launch)?;
        process.execs = installed;
        process.setup.as_mut()?.unblocking = Unblocking::Detoured;
        Some(())
    }

    /// Lets a program that may execute another one stop at its execs, if its C library is known. If
    /// not, it stops at all its system calls, unless it is likely to make many. Call when it
    /// begins.
    pub(super) fn begin_program(&mut self, pid: Pid, launch: LaunchId) {
        let Some(process) = self.processes.process(launch) else { return };
        let executes = std::mem::take(&mut process.executes);
        if executes == Executes::Unlikely {
            return;
        }
        let is_possible = !process.is_filtered && passes_through(pid) && !self.launchers.is_watched(pid);
        let detour = is_possible.then(|| ExecDetour::prepare(pid, &self.exec_points)).flatten();
        if let Some(detour) = detour.filter(|detour| detour.install(pid).is_ok()) {
            process.execs = ExecStops::Detour { detour, is_installed: true };
            process.setup = Some(Setup { unblocking: Unblocking::Detoured, ..Setup::default() });
        } else if executes == Executes::Soon {
            process.setup = Some(Setup::default());
        }
    }

    /// Returns how a new child stops before its exec, which is decided at the first child of a
    /// process. `None` if the child has a filter.
    fn exec_stops_of_children(&mut self, child: Pid, creator: LaunchId) -> Option<ExecStops> {
        let process = self.processes.process(creator)?;
        process.is_filtered |= !process.program.sets_no_filter() && self.waits.is_creator_filtered(child);
        if process.is_filtered {
            // Earlier children may have left a detour in the memory of the process, of which the
            // child may have a copy.
            process.execs = ExecStops::Calls(process.execs.installed());
            self.remove_detour(child);
            let child = self.processes.process_of(child)?;
            (child.is_filtered, child.execs) = (true, ExecStops::Calls(None));
            return None;
        }
        if matches!(process.execs, ExecStops::Unknown) {
            process.execs = ExecDetour::prepare(child, &self.exec_points).map_or(ExecStops::Sought, ExecStops::new);
        }
        let execs = process.execs;
        (!self.processes.process_of(child)?.is_filtered).then_some(execs)
    }

    /// Notes a call before the exec. If a process may set a filter after it, the process stops at
    /// its system calls, because those of a detour may then not be allowed.
    pub(super) fn note_call(&mut self, tid: Pid, launch: LaunchId, number: libc::c_long, arguments: &[u64; 6]) {
        let expects_filter = filters::may_follow(number, arguments);
        if expects_filter {
            self.remove_detour(tid);
        }
        let Some(process) = self.processes.process(launch) else { return };
        if expects_filter {
            (process.is_filtered, process.execs) = (true, ExecStops::Calls(None));
        }
        if let Some(setup) = &mut process.setup {
            if expects_filter {
                setup.unblocking = Unblocking::Past;
            }
            setup.on_entry(tid, number, arguments);
        }
    }

    /// Removes the detours from a stopped thread's memory, because the thread will be traced no
    /// longer, or by its system calls.
    pub(super) fn remove_detour(&mut self, tid: Pid) {
        let Some(process) = self.processes.process_of(tid) else {
            return;
        };
        process.shell.cease_awaiting(tid, &mut process.program);
        let Some(detour) = process.execs.installed() else {
            return;
        };
        detour.remove(tid);
        let owner = process.creator.filter(|_| process.shares_memory);
        if let Some(owner) = owner.and_then(|owner| self.processes.process(owner))
            && let ExecStops::Detour { is_installed, .. } = &mut owner.execs
        {
            *is_installed = false;
        }
    }

    /// Call at the entry of an execve of a process in setup. If its creator's calls of execve are
    /// still sought, this is one.
    pub(super) fn note_exec_call(&mut self, tid: Pid, launch: LaunchId) {
        let creator = self.processes.process(launch).and_then(|process| process.creator);
        let execs = creator.and_then(|creator| self.processes.process(creator)).map(|creator| creator.execs);
        if !matches!(execs, Some(ExecStops::Sought)) {
            return;
        }
        let call = CallInfo::read(tid).ok().and_then(|info| ExecPoint::of(tid, &info));
        let detour = call.as_ref().and_then(|call| ExecDetour::prepare(tid, std::slice::from_ref(call)));
        self.exec_points.extend(call.filter(|_| detour.is_some()));
        let found = detour.map_or(ExecStops::Calls(None), ExecStops::new);
        self.change_exec_stops(creator, |execs| {
            if matches!(execs, ExecStops::Sought) {
                *execs = found;
            }
        });
    }

    /// Call when a process has executed a program without having stopped in its detour. Its
    /// creator's next children get none.
    pub(super) fn note_bypassed_detour(&mut self, creator: Option<LaunchId>) {
        self.change_exec_stops(creator, |execs| *execs = ExecStops::Calls(execs.installed()));
    }

    /// Changes the stops of the children of a process, and of the processes with the same program
    /// that have created it.
    fn change_exec_stops(&mut self, mut creator: Option<LaunchId>, change: impl Fn(&mut ExecStops)) {
        while let Some(process) = creator.and_then(|creator| self.processes.process(creator)) {
            change(&mut process.execs);
            creator = process.creator;
        }
    }
}
