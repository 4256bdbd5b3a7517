//! Small processes, which do what can hang, or what would be distorted by the size of the doctor's memory. They are forked from the doctor
//! and must follow the rules for such processes: only system calls on memory that was prepared before; no code that allocates, locks or
//! panics.

use std::io;
use std::time::{Duration, Instant};

use super::waits;
use crate::child::{Child, die_with_parent};
use spawnscope_collect::shared::{Shareable, Shared};

/// A small process, and the shared memory for its results.
pub(super) struct Small<B: Shareable> {
    results: Shared<B>,
    child: Child,
}

/// The results of a small process.
pub(super) struct Measurement<B: Shareable> {
    pub(super) results: Shared<B>,
    /// Whether it finished in time.
    pub(super) is_in_time: bool,
    /// Whether it did not finish, but was runnable, so that it only waited for a CPU.
    pub(super) is_runnable: bool,
}

impl<B: Shareable> Small<B> {
    /// Starts a process that does `work`. It ends with the doctor at the latest.
    pub(super) fn begin(work: impl FnOnce(&B) -> Option<()>) -> io::Result<Small<B>> {
        let results = Shared::<B>::map()?;
        let child = Child::fork(None, || {
            die_with_parent();
            let _ = work(&results);
        })?;
        Ok(Small { results, child })
    }

    /// Waits for its end until `until`. Results stored by then count even if it did not finish.
    pub(super) fn end(self, until: Instant) -> Measurement<B> {
        let is_in_time = self.child.has_ended_by(until);
        Measurement {
            is_in_time,
            is_runnable: !is_in_time && waits::is_runnable(self.child.pid()),
            results: self.results,
        }
    }
}

/// Runs `work` in a small process, up to `limit`.
pub(super) fn measure<B: Shareable>(
    limit: Duration,
    work: impl FnOnce(&B) -> Option<()>,
) -> io::Result<Measurement<B>> {
    let until = Instant::now() + limit;
    Ok(Small::begin(work)?.end(until))
}
