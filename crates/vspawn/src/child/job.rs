//! What parent and child exchange, in memory that both share: the parent writes a `Job`, the child
//! a `ChildReport`.

use std::ffi::c_char;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use crate::error::{Error, Stage};
use crate::plan::{Move, Plan};
use crate::sys::{Errno, SignalSet};

/// What a child reports to its parent, in memory that both share.
#[derive(Debug, Default)]
pub(crate) struct ChildReport {
    pub(crate) errno: AtomicI32,
    pub(crate) stage: AtomicU32,
    /// Which object failed if a stage has several: the index of a move, a file action, a limit, or
    /// a candidate for exec.
    pub(crate) index: AtomicU32,
    /// What a detached child shares with the parent: `SHARES_MEMORY` or `SHARES_MEMORY_ONLY` while
    /// it runs in the parent's memory. When the child leaves that memory, the kernel sets this to
    /// 0.
    pub(crate) sharing_state: AtomicU32,
}

/// The initial value of `ChildReport::sharing_state`: the child runs in the parent's memory, and
/// may also use the parent's file table.
pub(crate) const SHARES_MEMORY: u32 = 1;
/// A value of `ChildReport::sharing_state`: the child runs in the parent's memory, but has its own
/// file table.
pub(crate) const SHARES_MEMORY_ONLY: u32 = 2;

/// The instructions for one child.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) plan: *const Plan,
    pub(crate) report: *const ChildReport,
    pub(crate) envp: *const *const c_char,
    pub(crate) moves: *mut Move,
    pub(crate) move_count: usize,
    /// Set if the child starts with the parent's file table. The child first gets its own table,
    /// without the descriptors above this number.
    pub(crate) unshare_above: Option<i32>,
    /// Whether the parent of a detached child waits until the child has its own file table.
    pub(crate) parent_waits_for_files: bool,
    /// The flags for close_range: 0 closes other descriptors at once, CLOSE_RANGE_CLOEXEC at the
    /// exec.
    pub(crate) close_flags: u32,
    /// Whether the child has to reset the parent's handlers itself, because clone3 was not
    /// available.
    pub(crate) clear_handlers: bool,
    /// The mask that the child sets before its exec. `None`: it keeps the one that it was created
    /// with.
    pub(crate) signal_mask: Option<SignalSet>,
    /// The parent's pid if there is a `parent_death_signal`, otherwise 0.
    pub(crate) parent_pid: u32,
}

impl Job {
    pub(crate) fn report(&self) -> &ChildReport {
        // SAFETY: set to a report that outlives the job.
        unsafe { &*self.report }
    }

    /// Returns the error that the child reported, if it failed.
    pub(crate) fn reported_error(&self, plan: &Plan) -> Option<Error> {
        let report = self.report();
        let errno = report.errno.load(Ordering::Acquire);
        let stage = Stage::from_number(report.stage.load(Ordering::Relaxed));
        let index = report.index.load(Ordering::Relaxed) as usize;
        (errno != 0).then(|| plan.error(stage, index, errno))
    }
}

pub(crate) struct Failure {
    pub(crate) stage: Stage,
    /// As in [`ChildReport::index`].
    pub(crate) index: usize,
    pub(crate) errno: Errno,
}

pub(crate) type Step = Result<(), Failure>;

pub(crate) fn failed_at(stage: Stage) -> impl Fn(Errno) -> Failure {
    move |errno| Failure { stage, index: 0, errno }
}
