//! Measures what creating processes costs on this machine, before the command is released: predictions need this for launches that
//! the recording does not contain. A separate process (`rounds`) measures while the collector is loaded, because the recorder has
//! memory and threads of its own. Measuring can fail or be too slow; the constants are then unknown.

mod calls;
mod rounds;
mod shared_results;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use self::calls::Unrecorded;
use self::shared_results::{Life, SharedResults};
use super::pidfd;
use super::shared::Shared;
use spawnscope_data::event::{Calibration, Constant, Pid};

/// No round begins later than this after the first.
const LAST_ROUND: Duration = Duration::from_millis(100);
/// How long the measuring process may live after that: longer than an undisturbed round.
const GRACE_PERIOD: Duration = Duration::from_millis(5);
/// Quartiles of fewer rounds are meaningless.
const FEWEST_ROUNDS: usize = 5;

/// The measuring process, until its result is collected. Dropping it kills and reaps the process.
pub struct Calibrator {
    process: Measuring,
    ended: OwnedFd,
    results: Shared<SharedResults>,
    until: Instant,
}

impl Calibrator {
    /// Starts measuring. The caller must not follow this process: a recording of the whole machine begins after `finish`.
    ///
    /// # Errors
    /// If there is no memory or no process for it.
    pub fn start() -> io::Result<Calibrator> {
        Calibrator::start_for(LAST_ROUND)
    }

    /// Like `start`, for a caller without a waiting command: no round begins later than `last_round` after the first.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_for(last_round: Duration) -> io::Result<Calibrator> {
        let results = Shared::<SharedResults>::map()?;
        // SAFETY: the child makes only system calls on memory that was mapped before, and never returns.
        let pid = match unsafe { fork() }? {
            ForkResult::Child => rounds::run(&results, last_round),
            ForkResult::Parent { child } => Pid(child.as_raw()),
        };
        let process = Measuring(pid);
        Ok(Calibrator {
            ended: pidfd(pid)?,
            process,
            results,
            until: Instant::now() + last_round + GRACE_PERIOD,
        })
    }

    /// Ends the measuring and returns the constants found.
    #[must_use]
    pub fn finish(self) -> Vec<Calibration> {
        self.await_end();
        drop(self.process);
        constants(&self.results)
    }

    fn await_end(&self) {
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut fds = [PollFd::new(&self.ended, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
                _ => return,
            }
        }
    }
}

/// Our own child; no other code reaps it.
struct Measuring(Pid);

impl Drop for Measuring {
    fn drop(&mut self) {
        // SAFETY: plain system calls; the child has not been reaped, so its pid cannot have been reused.
        unsafe {
            libc::kill(self.0.0, libc::SIGKILL);
            libc::waitpid(self.0.0, std::ptr::null_mut(), 0);
        }
    }
}

/// Medians and quartiles, if there are enough rounds and the median cost is positive.
fn constants(results: &SharedResults) -> Vec<Calibration> {
    let (small, vfork, large) = (results.small.lives(), results.vfork.lives(), results.large.lives());
    let found = [
        constant(Constant::ForkCreate, &small, |life| life.created as f64),
        constant(Constant::ForkExit, &small, |life| life.reaped as f64),
        constant(Constant::ColdForkExit, &results.cold.lives(), |life| life.reaped as f64),
        constant(Constant::VforkCreate, &vfork, |life| life.created as f64),
        constant(Constant::VforkExit, &vfork, |life| life.reaped as f64),
        per_mebibyte(Constant::PageCopy, &small, &large, |life| life.created as f64),
        per_mebibyte(Constant::PageFree, &small, &large, |life| life.after_creation() as f64),
        constant(Constant::CowFault, &results.faults.lives(), of_one_fault),
        constant(Constant::ReuseFault, &results.reuses.lives(), of_one_fault),
        constant(Constant::Cpuid, &results.identifications.lives(), of_one_identification),
    ];
    found.into_iter().flatten().collect()
}

fn of_one_fault(round: &Life) -> f64 {
    round.reaped as f64 / f64::from(rounds::FAULTS)
}

fn of_one_identification(round: &Life) -> f64 {
    round.reaped as f64 / f64::from(rounds::IDENTIFICATIONS)
}

/// The extra cost of the large process's children over the small process's median, per MiB.
fn per_mebibyte(what: Constant, small: &[Life], large: &[Life], of: impl Fn(&Life) -> f64) -> Option<Calibration> {
    let mebibytes = (rounds::LARGE_BYTES >> 20) as f64;
    let base = constant(what, small, &of)?.ns;
    constant(what, large, |life| (of(life) - base) / mebibytes)
}

fn constant(what: Constant, lives: &[Life], of: impl Fn(&Life) -> f64) -> Option<Calibration> {
    constant_of(what, lives.iter().map(of).collect())
}

/// Median and quartiles; `None` if there are too few values.
fn constant_of(what: Constant, mut values: Vec<f64>) -> Option<Calibration> {
    if values.len() < FEWEST_ROUNDS {
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
