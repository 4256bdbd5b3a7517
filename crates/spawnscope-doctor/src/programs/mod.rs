//! Starts the programs that checks run and time. Each check gets a share of the doctor's time. A
//! separate process supervises each program (`supervisor`).

mod supervisor;

use std::fmt::{self, Display, Formatter};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Effect;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// The time limit of all measurements and of the user's programs together, without the time to end
/// the last program.
pub(super) const TOTAL_TIME: Duration = Duration::from_millis(3800);
/// A difference between minimum run times counts as noise up to 1/NOISE_DIVISOR of the run time, or
/// up to `MIN_NOISE` if that is more.
const NOISE_DIVISOR: u64 = 10;
const MIN_NOISE: Nanos = Nanos(500_000);

/// Which output of a program is read. Other output goes to /dev/null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Capture {
    Nothing,
    Stdout = 1,
    Stderr = 2,
}

pub(super) struct RunResult {
    pub(super) took: Nanos,
    /// Whether the program ended. Otherwise it was killed at its time limit.
    has_ended: bool,
    pub(super) succeeded: bool,
    pub(super) output: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunError {
    NotStarted,
    /// The supervisor was killed, most likely by the program.
    SupervisorKilled,
    Failed,
    DidNotEnd(Nanos),
    NoTime,
}

impl Display for RunError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            RunError::NotStarted => "could not be started",
            RunError::SupervisorKilled => "could not be timed: its supervising process was killed",
            RunError::Failed => "failed",
            RunError::DidNotEnd(time) => return write!(formatter, "did not finish within {}", units::time(*time)),
            RunError::NoTime => "was not run: the programs before it used up the time",
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RunTime {
    pub(super) time: Nanos,
    /// Whether the program was killed at `time`, so that its real run time is longer.
    pub(super) is_lower_bound: bool,
}

impl RunTime {
    /// Returns how much longer this run time is than that of a program that ended.
    pub(super) fn excess_over(self, other: Nanos) -> RunTime {
        RunTime { time: self.time.since(other), ..self }
    }

    /// Returns the excess over `other`, if it exceeds the noise between runs of one program.
    pub(super) fn beyond_noise(self, other: Nanos) -> Option<RunTime> {
        let noise = Nanos(other.0 / NOISE_DIVISOR).max(MIN_NOISE);
        let excess = self.excess_over(other);
        (self.is_lower_bound || excess.time > noise).then_some(excess)
    }

    pub(super) fn effect(self, affected: &'static str) -> Effect {
        Effect { is_lower_bound: self.is_lower_bound, ..Effect::measured(self.time, affected) }
    }

    /// Returns the time, if the program ended on its own.
    pub(super) fn complete(self) -> Result<Nanos, RunError> {
        if self.is_lower_bound { Err(RunError::DidNotEnd(self.time)) } else { Ok(self.time) }
    }
}

impl Display for RunTime {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let more_than = if self.is_lower_bound { "more than " } else { "" };
        write!(formatter, "{more_than}{}", units::time(self.time))
    }
}

pub(super) struct Programs {
    until: Instant,
}

impl Programs {
    /// Gives a check its share of the time until `until`. `checks` checks, including this one, have
    /// yet to run.
    pub(super) fn for_check(until: Instant, checks: u32) -> Programs {
        let now = Instant::now();
        Programs { until: now + until.saturating_duration_since(now) / checks.max(1) }
    }

    /// Returns when the doctor's time ends; `spent` of it is used up.
    pub(super) fn deadline(spent: Duration) -> Instant {
        Instant::now() + TOTAL_TIME.saturating_sub(spent)
    }

    pub(super) fn run(&self, command: Command, capture: Capture) -> Result<RunResult, RunError> {
        let ran = supervisor::run(command, self.time_limit()?, capture)?;
        if ran.has_ended { Ok(ran) } else { Err(RunError::DidNotEnd(ran.took)) }
    }

    /// Returns the shortest time of several runs, because other load only makes a run longer. Slow
    /// programs run fewer times. Every run must succeed.
    pub(super) fn shortest(&self, runs: usize, mut command: impl FnMut() -> Command) -> Result<RunTime, RunError> {
        let mut shortest: Option<Nanos> = None;
        for _ in 0..runs {
            if shortest.is_some_and(|shortest| !self.has_time_after(shortest)) {
                break;
            }
            let ran = supervisor::run(command(), self.time_limit()?, Capture::Nothing)?;
            match (ran.has_ended, shortest) {
                (true, _) if !ran.succeeded => return Err(RunError::Failed),
                (true, _) => shortest = Some(shortest.map_or(ran.took, |shortest| shortest.min(ran.took))),
                (false, None) => return Ok(RunTime { time: ran.took, is_lower_bound: true }),
                (false, Some(_)) => break,
            }
        }
        let time = shortest.ok_or(RunError::NoTime)?;
        Ok(RunTime { time, is_lower_bound: false })
    }

    /// Returns whether there is time for another run, which may take twice as long as the shortest
    /// one.
    fn has_time_after(&self, shortest: Nanos) -> bool {
        self.time_limit().is_ok_and(|limit| limit > Duration::from_nanos(shortest.0) * 2)
    }

    /// Returns the time limit for a program: half of the remaining time, so that time is left for
    /// others if the program hangs.
    fn time_limit(&self) -> Result<Duration, RunError> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(RunError::NoTime) } else { Ok(left / 2) }
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../../../spawnscope/tests/support/attempts.rs"]
mod attempts;

#[cfg(test)]
mod tests;
