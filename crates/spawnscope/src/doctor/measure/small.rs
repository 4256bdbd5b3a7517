//! Small processes, which do what can hang, or must not cost what the doctor's memory costs. They are forked from the doctor, so they
//! follow the rules of such a process: only system calls on memory that was prepared before, nothing that allocates, locks or panics.

use std::io;
use std::time::{Duration, Instant};

use super::waits;
use crate::collect::shared::{Shareable, Shared};
use crate::doctor::child::{Child, die_with_parent};

/// A small process with memory that it leaves its results in.
pub(super) struct Small<B: Shareable> {
    results: Shared<B>,
    child: Child,
}

/// What a small process has left.
pub(super) struct Measurement<B: Shareable> {
    pub(super) results: Shared<B>,
    /// Whether it came to its end by itself.
    pub(super) is_in_time: bool,
    /// Whether it did not, but was to run, and waited for nothing but a processor.
    pub(super) is_runnable: bool,
}

impl<B: Shareable> Small<B> {
    /// Has `work` done, from now on. The process ends with the doctor at the latest.
    pub(super) fn begin(work: impl FnOnce(&B) -> Option<()>) -> io::Result<Small<B>> {
        let results = Shared::<B>::map()?;
        let child = Child::fork(None, || {
            die_with_parent();
            let _ = work(&results);
        })?;
        Ok(Small { results, child })
    }

    /// Waits for its end, but not for longer. What it put on the board until then counts.
    pub(super) fn end(self, until: Instant) -> Measurement<B> {
        let is_in_time = self.child.has_ended_by(until);
        Measurement {
            is_in_time,
            is_runnable: !is_in_time && waits::is_runnable(self.child.pid()),
            results: self.results,
        }
    }
}

/// Has `work` done by a small process, for so long at most.
pub(super) fn measure<B: Shareable>(
    limit: Duration,
    work: impl FnOnce(&B) -> Option<()>,
) -> io::Result<Measurement<B>> {
    let until = Instant::now() + limit;
    Ok(Small::begin(work)?.end(until))
}
