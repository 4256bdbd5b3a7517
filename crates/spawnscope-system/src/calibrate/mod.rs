//! Measures what creating processes costs on this machine, before the command is released: predictions need this for launches that
//! the recording does not contain. A separate process (`rounds`) measures while the collector is loaded, because the recorder has
//! memory and threads of its own. Measuring can fail or be too slow; the constants are then unknown.

mod calls;
mod launches;
mod rounds;
mod shared_results;

use std::io;
use std::time::{Duration, Instant};

pub use self::calls::Unrecorded;
use self::shared_results::{Life, SharedResults, Times};
use crate::launch_timing::measuring_process::MeasuringProcess;
use spawnscope_data::event::{Calibration, Constant, Nanos};

/// No round begins later than this after the first, except those without which a constant would be unknown.
const LAST_ROUND: Duration = Duration::from_millis(100);
/// No round at all begins later than this after the first. On an idle machine, the rounds that are needed take 20 ms.
const LAST_NEEDED_ROUND: Duration = Duration::from_secs(1);
/// How long the measuring process may live after that: longer than an undisturbed round.
const GRACE_PERIOD: Duration = Duration::from_millis(5);
/// Quartiles of fewer rounds are meaningless.
const MIN_ROUNDS: usize = 5;

/// The measuring process, until its result is collected. Dropping it kills and reaps the process.
pub struct Calibrator {
    process: MeasuringProcess<SharedResults>,
    until: Instant,
}

impl Calibrator {
    /// Starts measuring. The caller must not follow this process: a recording of the whole machine begins after `finish`.
    ///
    /// # Errors
    /// If there is no memory or no process for it.
    pub fn start() -> io::Result<Calibrator> {
        Calibrator::start_until(LAST_ROUND, LAST_NEEDED_ROUND)
    }

    /// Like `start`, for a caller with a limit of its own: no round begins later than `last_round` after the first.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_for(last_round: Duration) -> io::Result<Calibrator> {
        Calibrator::start_until(last_round, last_round)
    }

    fn start_until(last_round: Duration, last_needed: Duration) -> io::Result<Calibrator> {
        Ok(Calibrator {
            process: MeasuringProcess::start(|results| rounds::measure(results, last_round, last_needed))?,
            until: Instant::now() + last_needed + GRACE_PERIOD,
        })
    }

    /// Ends the measuring and returns the constants found.
    #[must_use]
    pub fn finish(self) -> Vec<Calibration> {
        constants(&self.process.end(self.until).results)
    }
}

/// Medians and quartiles, if there are enough rounds and the median cost is positive.
fn constants(results: &SharedResults) -> Vec<Calibration> {
    let (small, vfork, large) = (results.small.all(), results.vfork.all(), results.large.all());
    let found = [
        constant(Constant::ForkCreate, &small, |life| life.created),
        constant(Constant::ForkExit, &small, |life| life.reaped),
        constant(Constant::ColdForkExit, &results.cold.all(), |life| life.reaped),
        constant(Constant::VforkCreate, &vfork, |life| life.created),
        constant(Constant::VforkExit, &vfork, |life| life.reaped),
        per_mebibyte(Constant::PageCopy, &small, &large, |life| life.created),
        per_mebibyte(Constant::PageFree, &small, &large, |life| {
            life.reaped.since(life.created)
        }),
        of_one(Constant::CowFault, &results.faults, rounds::FAULTS),
        of_one(Constant::ReuseFault, &results.reuses, rounds::FAULTS),
        of_one(Constant::FailedOpen, &results.opens, rounds::OPENS),
        of_one(Constant::Cpuid, &results.identifications, rounds::IDENTIFICATIONS),
        at_start(results),
    ];
    found.into_iter().flatten().collect()
}

/// A part of each life.
fn constant(what: Constant, lives: &[Life], of: impl Fn(&Life) -> Nanos) -> Option<Calibration> {
    constant_of(what, lives.iter().map(|life| of(life).0 as f64).collect())
}

/// One of the `count` operations that were timed together.
fn of_one(what: Constant, times: &Times, count: u32) -> Option<Calibration> {
    constant_of(
        what,
        times.rows().map(|[time]| time as f64 / f64::from(count)).collect(),
    )
}

/// All CPUID instructions of a program's start.
fn at_start(results: &SharedResults) -> Option<Calibration> {
    let [count] = results.at_start.rows().next()?;
    let one = of_one(Constant::Cpuid, &results.identifications, rounds::IDENTIFICATIONS)?;
    let all = |ns: f64| ns * count as f64;
    Some(Calibration {
        what: Constant::Identify,
        ns: all(one.ns),
        low_ns: one.low_ns.map(all),
        high_ns: one.high_ns.map(all),
    })
}

/// The extra cost of the large process's children over the small process's median, per MiB.
fn per_mebibyte(what: Constant, small: &[Life], large: &[Life], of: impl Fn(&Life) -> Nanos) -> Option<Calibration> {
    let mebibytes = (rounds::LARGE_BYTES >> 20) as f64;
    let base = constant(what, small, &of)?.ns;
    let extra = |life| (of(life).0 as f64 - base) / mebibytes;
    constant_of(what, large.iter().map(extra).collect())
}

/// Median and quartiles; `None` if there are too few values.
fn constant_of(what: Constant, mut values: Vec<f64>) -> Option<Calibration> {
    if values.len() < MIN_ROUNDS {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let quantile = |quarters: usize| values[(values.len() - 1) * quarters / 4];
    // A cost that is not positive means that the noise exceeded the cost.
    (quantile(2) > 0.0).then(|| Calibration {
        what,
        ns: quantile(2),
        low_ns: Some(quantile(1)),
        high_ns: Some(quantile(3)),
    })
}

#[cfg(test)]
mod tests;
