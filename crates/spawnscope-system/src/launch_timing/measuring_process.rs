//! Measuring processes, for measurements that can hang, or that the memory and the threads of their
//! parent would distort.

use std::ffi::c_int;
use std::io;
use std::time::{Duration, Instant};

use super::isolated_child::IsolatedChild;
use super::run_queue_waits;
use super::shared::{Shareable, SharedMapping};
use crate::process::die_with_parent;

/// A measuring process, and the shared memory for its results. Dropping it kills and reaps the
/// process.
#[derive(Debug)]
pub struct MeasuringProcess<R: Shareable> {
    pub results: SharedMapping<R>,
    child: IsolatedChild,
}

#[derive(Debug)]
pub struct Measurement<R: Shareable> {
    pub results: SharedMapping<R>,
    pub is_in_time: bool,
    /// Whether the process did not finish in time but was runnable at that moment, so that it was
    /// slow rather than blocked.
    pub is_runnable: bool,
}

impl<R: Shareable> MeasuringProcess<R> {
    /// Starts a process that does `work`. The process is killed when its parent ends.
    pub fn start(work: impl FnOnce(&R) -> Option<()>) -> io::Result<MeasuringProcess<R>> {
        let results = SharedMapping::<R>::map()?;
        let child = IsolatedChild::fork(None, || {
            die_with_parent(libc::SIGKILL);
            let _ = work(&results);
        })?;
        Ok(MeasuringProcess { results, child })
    }

    pub fn pid(&self) -> c_int {
        self.child.pid
    }

    /// Waits until the process has ended, and kills it at `until`. The results that it has stored
    /// by then are valid even if it did not finish.
    pub fn end(self, until: Instant) -> Measurement<R> {
        let is_in_time = self.child.has_ended_by(until);
        Measurement {
            is_in_time,
            is_runnable: !is_in_time && run_queue_waits::is_runnable(self.child.pid),
            results: self.results,
        }
    }
}

/// Runs `work` in a measuring process, for at most `limit`.
pub fn measure<R: Shareable>(limit: Duration, work: impl FnOnce(&R) -> Option<()>) -> io::Result<Measurement<R>> {
    let until = Instant::now() + limit;
    Ok(MeasuringProcess::start(work)?.end(until))
}
