//! Which system calls of a new process are traced before its exec. A child of posix_spawn makes about 130 of them while it blocks all signals,
//! and unblocks them just before its exec. It stops only at that moment (`spawnscope_system::ptrace::unblocking`) and at the calls after it,
//! among which are all of its execs.

use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_system::ptrace::unblocking::{
    blocks_all_signals, changes_mask, is_unblocking, mask_query, passes_signal, sets_signal, stop_at_unblocking,
    stop_at_unblocking_after_query,
};

use super::processes::Thread;
use super::tracing::Tracing;

/// The state of tracing the system calls of a new process up to its exec, or of a program up to its exec of another one.
#[derive(Debug)]
pub(super) struct Setup {
    /// Number of stops after which the calls are no longer traced. A forked process that never executes a program must not be slowed down at
    /// each of its system calls.
    pub(super) stops_left: u32,
    /// The `execve` call that has been entered and has not returned.
    pub(super) exec: Option<ExecCall>,
    unblocking: Unblocking,
}

/// An `execve` in progress.
#[derive(Debug)]
pub(super) struct ExecCall {
    pub(super) enter: Nanos,
    pub(super) enter_cpu: Option<Nanos>,
    pub(super) path: Vec<u8>,
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
        /// The process that has created this one.
        creator: LaunchId,
        /// The first call of this process, if none of its calls so far would have discarded a pending signal.
        keeps_from: Option<libc::c_long>,
    },
}

#[derive(Debug)]
struct Sought {
    creator: LaunchId,
    /// The first call of an earlier child of the creator that has kept the signal from its first call on.
    known: Option<libc::c_long>,
    first_call: Option<libc::c_long>,
    /// Where the current call stores the mask of blocked signals, if it is the first call and does nothing else.
    query: Option<u64>,
    /// Whether a call has set the action of the signal.
    has_set: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { stops_left: 400, exec: None, unblocking: Unblocking::Past }
    }
}

impl Setup {
    /// Call at the first stop of a process that shares its creator's memory, so that it only prepares an exec. `known`: the creator's
    /// `child_keeps_signal`.
    pub(super) fn seek_unblocking(&mut self, process: Pid, creator: LaunchId, known: Option<libc::c_long>) {
        if blocks_all_signals(process) {
            let sought = Sought { creator, known, first_call: None, query: None, has_set: false };
            self.unblocking = Unblocking::Sought(sought);
        }
    }

    /// Whether the process stops at its system calls.
    pub(super) fn has_traced_calls(&self) -> bool {
        !self.awaits_unblocking()
    }

    /// Whether the process will stop when it unblocks its signals.
    pub(super) fn awaits_unblocking(&self) -> bool {
        matches!(self.unblocking, Unblocking::Awaited { .. })
    }

    /// Call when the process enters a system call.
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

    /// Call when the process leaves a system call.
    pub(super) fn on_exit(&mut self, process: Pid) {
        if let Unblocking::Sought(sought) = &mut self.unblocking
            && let Some(address) = sought.query.take()
            && stop_at_unblocking_after_query(process, address)
        {
            self.unblocking = Unblocking::Awaited { creator: sought.creator, keeps_from: None };
        }
    }

    /// Call when the process has unblocked its signals. Returns the creator and its `child_keeps_signal`.
    fn on_unblocked(&mut self) -> Option<(LaunchId, Option<libc::c_long>)> {
        match std::mem::replace(&mut self.unblocking, Unblocking::Past) {
            Unblocking::Awaited { creator, keeps_from } => Some((creator, keeps_from)),
            _ => None,
        }
    }

    /// The creator of a process that has executed a program without having stopped when it unblocked its signals.
    pub(super) fn creator_to_forget(&self) -> Option<LaunchId> {
        match self.unblocking {
            Unblocking::Awaited { creator, .. } => Some(creator),
            _ => None,
        }
    }
}

impl Tracing {
    /// Returns whether the signal is the tracer's own, by which a process stops when it unblocks its signals. It must not be delivered.
    pub(super) fn handle_unblocking(&mut self, tid: Pid, thread: Thread, signal: i32) -> bool {
        let Some(process) = self.processes.process(thread.launch).filter(|process| process.pid == tid) else {
            return false;
        };
        let is_awaited = process.setup.as_ref().is_some_and(Setup::awaits_unblocking);
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
}
