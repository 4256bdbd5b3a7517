//! Measures what creating processes costs on this machine, before the command is released.
//! Predictions need these constants for launches that the recording does not contain. A separate
//! process (`rounds`) measures them while the collector is loaded, because the memory and the
//! threads of the recorder would distort them. If measuring fails or is too slow, the constants are
//! unknown.

mod calls;
mod launches;
mod rounds;
mod shared_results;

use std::io;
use std::time::{Duration, Instant};

pub use self::calls::UnrecordedCall;
pub use self::launches::recorded_launches;
use self::shared_results::{CREATED, Lives, REAPED, SharedResults, Times};
use crate::launch_timing::measuring_process::MeasuringProcess;
use spawnscope_data::event::{Calibration, Constant};

/// How long after the first round the last one may begin, unless a constant would be unknown
/// without it.
const LATEST_ROUND: Duration = Duration::from_millis(100);
/// How long after the first round the last one may begin in any case. On an idle machine, the
/// rounds that are needed take 20 ms.
const LATEST_NEEDED_ROUND: Duration = Duration::from_secs(1);
/// How long the measuring process may run after the latest start of a round: longer than an
/// undisturbed round.
const GRACE_PERIOD: Duration = Duration::from_millis(5);
/// Minimum number of rounds for a constant, because quartiles of fewer values are meaningless.
const MIN_ROUNDS: usize = 5;

/// The measuring process, until its result is collected. Dropping it kills and reaps the process.
pub struct Calibrator {
    process: MeasuringProcess<SharedResults>,
    until: Instant,
}

impl Calibrator {
    /// Starts measuring. The caller must not record the measuring process, so a recording of the
    /// whole machine may only begin after `finish`.
    pub fn start() -> io::Result<Calibrator> {
        Calibrator::start_until(LATEST_ROUND, LATEST_NEEDED_ROUND)
    }

    /// Like `start`, for a caller with a limit of its own: no round begins later than `last_round`
    /// after the first.
    pub fn start_for(last_round: Duration) -> io::Result<Calibrator> {
        Calibrator::start_until(last_round, last_round)
    }

    fn start_until(last_round: Duration, last_needed: Duration) -> io::Result<Calibrator> {
        Ok(Calibrator {
            process: MeasuringProcess::start(|results| rounds::measure(results, last_round, last_needed))?,
            until: Instant::now() + last_needed + GRACE_PERIOD,
        })
    }

    /// Waits for the measuring process, ends it if it takes too long, and returns the constants
    /// that it has measured.
    pub fn finish(self) -> Vec<Calibration> {
        constants(&self.process.end(self.until).results)
    }
}

/// Returns the constants that have enough rounds and a positive median.
fn constants(results: &SharedResults) -> Vec<Calibration> {
    let SharedResults { small, cold, vfork, large, .. } = results;
    let found = [
        constant(Constant::ForkCreate, small, |life| life[CREATED]),
        constant(Constant::ForkExit, small, |life| life[REAPED]),
        constant(Constant::ColdForkExit, cold, |life| life[REAPED]),
        constant(Constant::VforkCreate, vfork, |life| life[CREATED]),
        constant(Constant::VforkExit, vfork, |life| life[REAPED]),
        per_mebibyte(Constant::PageCopy, small, large, |life| life[CREATED]),
        per_mebibyte(Constant::PageFree, small, large, |life| life[REAPED].saturating_sub(life[CREATED])),
        per_operation(Constant::CowFault, &results.faults, rounds::FAULTS),
        per_operation(Constant::ReuseFault, &results.reuses, rounds::FAULTS),
        per_operation(Constant::FailedOpen, &results.opens, rounds::OPENS),
        per_operation(Constant::Cpuid, &results.identifications, rounds::IDENTIFICATIONS),
        identification_at_start(results),
    ];
    found.into_iter().flatten().collect()
}

/// Returns a constant that is the duration of a part of a life, from the lives of several children.
fn constant(what: Constant, lives: &Lives, part: impl Fn([u64; 2]) -> u64) -> Option<Calibration> {
    summarize(what, lives.rows().map(|life| part(life) as f64).collect())
}

/// Returns the time of one operation, if `count` operations were timed together.
fn per_operation(what: Constant, times: &Times, count: u32) -> Option<Calibration> {
    summarize(what, times.rows().map(|[time]| time as f64 / f64::from(count)).collect())
}

fn identification_at_start(results: &SharedResults) -> Option<Calibration> {
    let [count] = results.instructions_at_start.rows().next()?;
    let one = per_operation(Constant::Cpuid, &results.identifications, rounds::IDENTIFICATIONS)?;
    let count = count as f64;
    Some(Calibration {
        what: Constant::Identify,
        ns: one.ns * count,
        low_ns: one.low_ns.map(|ns| ns * count),
        high_ns: one.high_ns.map(|ns| ns * count),
    })
}

/// Returns how much more a part of a life takes in children of the large process than the median in
/// children of the small process, per MiB.
fn per_mebibyte(what: Constant, small: &Lives, large: &Lives, part: impl Fn([u64; 2]) -> u64) -> Option<Calibration> {
    let mebibytes = (rounds::LARGE_BYTES >> 20) as f64;
    let base = constant(what, small, &part)?.ns;
    summarize(what, large.rows().map(|life| (part(life) as f64 - base) / mebibytes).collect())
}

/// Returns the median and the quartiles of the values; `None` if there are too few values or the
/// median is not positive.
fn summarize(what: Constant, mut values: Vec<f64>) -> Option<Calibration> {
    if values.len() < MIN_ROUNDS {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let [low, median, high] = [1, 2, 3].map(|quarters| values[(values.len() - 1) * quarters / 4]);
    // If the median is not positive, noise exceeded the cost.
    (median > 0.0).then_some(Calibration { what, ns: median, low_ns: Some(low), high_ns: Some(high) })
}

#[cfg(test)]
mod tests;
