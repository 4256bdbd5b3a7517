//! Programs that checks start, each check within its share of the doctor's time. Each program (`program_session`) has a process of ours that
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
mod tests {
    use std::fs;

    use super::attempts::{best_of_three, good};
    use super::*;

    fn within(time: Duration) -> Programs {
        Programs::of_check(Instant::now() + time, 1)
    }

    const LONG: Duration = Duration::from_secs(20);

    fn shell(script: &str, folder: &tempfile::TempDir) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(folder.path());
        shell
    }

    #[test]
    fn no_program_is_started_when_the_time_for_it_is_up() {
        let late = within(Duration::ZERO);
        let program = || Command::new("true");
        assert_eq!(late.run(program(), Reads::Nothing).err(), Some(Unknown::NoTime));
        assert_eq!(late.count_launches(program()), None);
        assert!(
            within(LONG)
                .run(program(), Reads::Nothing)
                .is_ok_and(|ran| ran.succeeded)
        );
    }

    #[test]
    fn only_the_output_that_is_wanted_is_read_and_not_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let both = "echo answer; echo warning >&2";
        let said = |script: &str, reads| within(LONG).run(shell(script, &folder), reads).unwrap().output;
        assert_eq!(said(both, Reads::Output), "answer\n");
        assert_eq!(said(both, Reads::Errors), "warning\n");
        assert_eq!(said(both, Reads::Nothing), "");
        let flood = said("head -c 9000000 /dev/zero", Reads::Output);
        assert!((1_000_000..2_000_000).contains(&flood.len()), "{}", flood.len());
    }

    #[test]
    fn a_program_that_takes_too_long_may_tidy_up_before_it_is_ended() {
        let script = "touch lock; trap 'rm lock; exit' TERM; touch began; sleep 60 & wait";
        // On a busy machine, it may not reach its trap.
        best_of_three(|| {
            let folder = tempfile::tempdir().unwrap();
            let took = within(Duration::from_secs(1))
                .shortest(3, || shell(script, &folder))
                .unwrap();
            assert!(took.is_lower_bound && took.time.0 >= 400_000_000, "{took}");
            let [began, lock] = ["began", "lock"].map(|name| folder.path().join(name).exists());
            good(began && !lock, || format!("began: {began}, lock: {lock}"))
        });
    }

    #[test]
    fn nothing_of_its_session_outlives_it_not_even_what_heeds_no_signal() {
        let folder = tempfile::tempdir().unwrap();
        let stubborn = "(trap '' TERM HUP; echo $$; while :; do sleep 60; done) & exec sleep 60";
        within(Duration::from_millis(200))
            .shortest(1, || shell(stubborn, &folder))
            .unwrap();
        let left = "sleep 60 & echo $!";
        let ran = within(LONG).run(shell(left, &folder), Reads::Output).unwrap();
        // A process that has ended may not have been reaped.
        let command_line = fs::read(format!("/proc/{}/cmdline", ran.output.trim()));
        assert!(command_line.unwrap_or_default().is_empty());
    }

    #[test]
    fn a_program_that_kills_its_supervisor_is_ended_all_the_same() {
        // Killed while the program runs, and when only a background job of it is left.
        for script in [
            "echo $$ >left; kill -9 $PPID; trap '' HUP TERM; sleep 60",
            "supervisor=$PPID; (trap '' HUP TERM; sleep 0.05; kill -9 $supervisor; exec sleep 60) & echo $! >left",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let ran = within(LONG).run(shell(script, &folder), Reads::Nothing);
            assert_eq!(ran.err(), Some(Unknown::SupervisorKilled));
            let left = fs::read_to_string(folder.path().join("left")).unwrap();
            let command_line = fs::read(format!("/proc/{}/cmdline", left.trim()));
            assert!(command_line.unwrap_or_default().is_empty(), "{script}");
        }
    }

    #[test]
    fn differences_within_the_noise_are_not_reported() {
        let took = |time| RunTime {
            time: Nanos(time),
            is_lower_bound: false,
        };
        let beyond = |time, other| took(time).beyond_noise(Nanos(other)).map(|more| more.time.0);
        assert_eq!(beyond(1_302_000, 1_000_000), None);
        assert_eq!(beyond(3_000_000, 1_000_000), Some(2_000_000));
        assert_eq!(beyond(205_000_000, 200_000_000), None);
    }

    #[test]
    fn a_job_in_the_background_that_ends_soon_comes_to_its_end() {
        let script = "(sleep 0.05; touch done) &";
        // On a busy machine, 0.05 s may take too long.
        best_of_three(|| {
            let folder = tempfile::tempdir().unwrap();
            within(LONG).run(shell(script, &folder), Reads::Nothing).unwrap();
            good(folder.path().join("done").exists(), || "not done".to_owned())
        });
        best_of_three(|| {
            let folder = tempfile::tempdir().unwrap();
            assert!(within(LONG).count_launches(shell(script, &folder)).is_some());
            good(folder.path().join("done").exists(), || "not done".to_owned())
        });
    }

    #[test]
    fn processes_are_counted_and_threads_are_not() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "(:); (: | :); true"]);
        // A subshell, another one, and two in its pipeline.
        let launches = within(LONG).count_launches(shell).unwrap();
        assert_eq!(launches.to_string(), "4 processes");
    }

    #[test]
    fn counts_of_a_program_that_does_not_end_are_lower_bounds() {
        let folder = tempfile::tempdir().unwrap();
        best_of_three(|| {
            let script = "(:); (:); sleep 60 & wait";
            let launches = within(Duration::from_secs(2)).count_launches(shell(script, &folder));
            let counted = launches.map(|launches| launches.to_string());
            good(counted.as_deref() == Some("at least 3 processes"), || {
                format!("{counted:?}")
            })
        });
        let few = Launches {
            number: 3,
            is_lower_bound: false,
        };
        let cut = |number| Launches {
            number,
            is_lower_bound: true,
        };
        assert_eq!(cut(5).beyond(few), Some(cut(2)));
        // A difference from a truncated count is unknown.
        assert_eq!(cut(3).beyond(few), None);
        assert_eq!(few.beyond(cut(1)), None);
    }
}
