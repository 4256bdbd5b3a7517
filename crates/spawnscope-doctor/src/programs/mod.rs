//! Programs that checks start, each check within its share of the doctor's time. Each program (`program_session`) has a process that
//! supervises it (`supervisor`), or counts the processes that it creates (`trace`). If a program kills that process, the doctor ends the
//! remaining processes (`orphans`).

mod orphans;
mod program_session;
mod supervisor;
mod trace;

use std::fmt::{self, Display, Formatter};
use std::process::Command;
use std::time::{Duration, Instant};

use self::supervisor::Task;
use crate::Effect;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// The time limit of the doctor as a whole, except for ending programs.
const TIME_FOR_ALL: Duration = Duration::from_millis(3800);
/// In less time, counting processes is pointless.
const MIN_COUNTING: Duration = Duration::from_millis(20);
/// Differences between minimal run times count as noise up to this fraction, or up to `MIN_NOISE` if that is more.
const NOISE_PART: u64 = 10;
const MIN_NOISE: Nanos = Nanos(500_000);

/// Which output is read; the others go to /dev/null.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    Nothing,
    Output,
    Errors,
}

pub(super) struct Ran {
    pub(super) took: Nanos,
    pub(super) succeeded: bool,
    /// What it wrote to the output that was read.
    pub(super) output: String,
}

enum Outcome {
    /// It ended on its own.
    Ended(Ran),
    /// It was killed at its time limit; `Ran` has the time and the output until then.
    TookTooLong(Ran),
}

/// Why the time of a program is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    NotStarted,
    /// It killed its supervisor.
    SupervisorKilled,
    Failed,
    /// It was killed after this time.
    DidNotEnd(Nanos),
    NoTime,
}

impl Display for Unknown {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Unknown::NotStarted => "could not be started",
            Unknown::SupervisorKilled => "could not be timed: its supervising process was killed",
            Unknown::Failed => "failed",
            Unknown::DidNotEnd(time) => return write!(formatter, "did not finish within {}", units::time(*time)),
            Unknown::NoTime => "was not run: the programs before it used up the time",
        })
    }
}

/// How long a program takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunTime {
    pub(super) time: Nanos,
    /// Whether it was killed at `time`, so that it takes longer.
    pub(super) is_lower_bound: bool,
}

impl RunTime {
    /// How much longer it takes than a program that ended.
    pub(super) fn since(self, other: Nanos) -> RunTime {
        RunTime {
            time: self.time.since(other),
            ..self
        }
    }

    /// The difference, if it exceeds the noise between runs of one program.
    pub(super) fn beyond_noise(self, other: Nanos) -> Option<RunTime> {
        let noise = Nanos(other.0 / NOISE_PART).max(MIN_NOISE);
        let more = self.since(other);
        (self.is_lower_bound || more.time > noise).then_some(more)
    }

    /// The time as an effect.
    pub(super) fn effect(self, of: &'static str) -> Effect {
        Effect {
            is_lower_bound: self.is_lower_bound,
            ..Effect::measured(self.time, of)
        }
    }

    /// The time, if the program ended on its own.
    pub(super) fn whole(self) -> Result<Nanos, Unknown> {
        if self.is_lower_bound {
            Err(Unknown::DidNotEnd(self.time))
        } else {
            Ok(self.time)
        }
    }
}

impl Display for RunTime {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let more_than = if self.is_lower_bound { "more than " } else { "" };
        write!(formatter, "{more_than}{}", units::time(self.time))
    }
}

/// How many processes a program and its descendants create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launches {
    pub(super) number: u64,
    /// Whether it was killed before it ended, so that it may create more.
    pub(super) is_lower_bound: bool,
}

impl Launches {
    /// How many more than a program that ended; `None` if that is unknown.
    pub(super) fn beyond(self, other: Launches) -> Option<Launches> {
        let number = self.number.saturating_sub(other.number);
        let is_known = !other.is_lower_bound && (!self.is_lower_bound || number > 0);
        is_known.then_some(Launches { number, ..self })
    }
}

impl Display for Launches {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let at_least = if self.is_lower_bound { "at least " } else { "" };
        let processes = units::counted(self.number, "process", "processes");
        write!(formatter, "{at_least}{processes}")
    }
}

/// Starts programs until their time is used up.
pub(super) struct Programs {
    until: Instant,
}

impl Programs {
    /// A check's share of the time until `until`; `checks` checks will still start programs.
    pub(super) fn of_check(until: Instant, checks: u32) -> Programs {
        let now = Instant::now();
        Programs {
            until: now + until.saturating_duration_since(now) / checks.max(1),
        }
    }

    /// When the doctor's time ends, of which `spent` is used up.
    pub(super) fn end_of_time(spent: Duration) -> Instant {
        Instant::now() + TIME_FOR_ALL.saturating_sub(spent)
    }

    /// Runs a program until it ends.
    pub(super) fn run(&self, command: Command, reads: Reads) -> Result<Ran, Unknown> {
        match self.ask(command, self.left()? / 2, Task::Run(reads))? {
            Outcome::Ended(ran) => Ok(ran),
            Outcome::TookTooLong(ran) => Err(Unknown::DidNotEnd(ran.took)),
        }
    }

    /// The shortest of several runs that all succeed, because other load only makes them longer. Slow programs run fewer times.
    pub(super) fn shortest(&self, runs: usize, mut command: impl FnMut() -> Command) -> Result<RunTime, Unknown> {
        let mut shortest: Option<Nanos> = None;
        for _ in 0..runs {
            if shortest.is_some_and(|shortest| !self.has_time_for(shortest, 2)) {
                break;
            }
            match self.ask(command(), self.left()? / 2, Task::Run(Reads::Nothing))? {
                Outcome::Ended(ran) if ran.succeeded => {
                    shortest = Some(shortest.map_or(ran.took, |shortest| shortest.min(ran.took)));
                }
                Outcome::Ended(_) => return Err(Unknown::Failed),
                Outcome::TookTooLong(ran) if shortest.is_none() => {
                    return Ok(RunTime {
                        time: ran.took,
                        is_lower_bound: true,
                    });
                }
                Outcome::TookTooLong(_) => break,
            }
        }
        let time = shortest.ok_or(Unknown::NoTime)?;
        Ok(RunTime {
            time,
            is_lower_bound: false,
        })
    }

    /// How many processes a program and its descendants create within the time; `None` if it cannot be traced, fails, or no time is left.
    pub(super) fn count_launches(&self, command: Command) -> Option<Launches> {
        // A larger share than elsewhere, because little remains to be done afterwards.
        let time_limit = self.left().ok()? / 4 * 3;
        if time_limit < MIN_COUNTING {
            return None;
        }
        let (ran, is_lower_bound) = match self.ask(command, time_limit, Task::Count).ok()? {
            Outcome::Ended(ran) => (ran, false),
            Outcome::TookTooLong(ran) => (ran, true),
        };
        let number = ran.output.len() as u64;
        (ran.succeeded || is_lower_bound).then_some(Launches { number, is_lower_bound })
    }

    /// Runs a task with `time_limit`, a part of the remaining time, so that a program that hangs leaves time for others.
    fn ask(&self, command: Command, time_limit: Duration, task: Task) -> Result<Outcome, Unknown> {
        supervisor::ask(command, time_limit, task)
    }

    fn has_time_for(&self, takes: Nanos, times: u32) -> bool {
        self.left()
            .is_ok_and(|left| left / 2 > Duration::from_nanos(takes.0) * times)
    }

    fn left(&self) -> Result<Duration, Unknown> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Unknown::NoTime) } else { Ok(left) }
    }
}

#[cfg(test)]
#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../../../spawnscope/tests/support/attempts.rs"]
mod attempts;

#[cfg(test)]
mod tests;
