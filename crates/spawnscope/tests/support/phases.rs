//! Compares a phase with a workload that makes just that phase long by an amount it measures itself: the phase must have grown by that
//! amount within 5 % or 1 ms, whichever is larger, and no other phase by more than 3 ms.

use std::ffi::OsString;

use super::attempts::best_of_three;
use super::launches::{Launch, PHASES};
use super::recording::launches;
use super::run::{Record, is_by_ptrace};
use super::workloads::{Truth, path};

const SMALLEST_TOLERANCE_NS: i64 = 1_000_000;
const OTHERS_MAY_GROW_NS: i64 = 3_000_000;

/// So much memory, or an eighth of what is free where that is less: small machines have long phases with less, too.
pub fn at_most_megabytes(most: u64) -> String {
    let memory = std::fs::read_to_string("/proc/meminfo").expect("/proc is mounted");
    let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = free.and_then(|free| free.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let eighth = kibibytes.expect("free memory in KiB") / 8 / 1024;
    most.min(eighth).to_string()
}

/// A command line: workloads, then plain words.
pub fn words(workloads: &[&str], plain: &[&str]) -> Vec<OsString> {
    let paths = workloads.iter().map(|workload| path(workload).into_os_string());
    paths.chain(plain.iter().map(OsString::from)).collect()
}

/// What the children of one workload cost: by phase, and by the workload's own measurement, child by child.
struct Observed {
    phases: Vec<[Option<i64>; PHASES.len()]>,
    amounts: Vec<i64>,
}

impl Observed {
    fn of(flags: &[&str], command: &[OsString]) -> Observed {
        let record = Record::new().flags(flags);
        let finished = record.run(command).expect_code(0);
        let truth = Truth::new(&finished.stdout);
        let launches = launches(&record.file());
        let phases_of = |launch: &Launch| PHASES.map(|phase| launch.phase_ns(phase));
        let phases = truth
            .all("child")
            .into_iter()
            .map(|pid| phases_of(launches.with_pid(pid)))
            .collect();
        Observed {
            phases,
            amounts: truth.all("amount_ns"),
        }
    }

    /// The median of a phase, `None` when it is unknown for all children. Only ptrace sees phases of some children: the reap, and `queue` and
    /// `setup` of children that lost their first CPU early.
    fn median_ns(&self, phase: usize) -> Option<i64> {
        let known: Vec<i64> = self.phases.iter().filter_map(|phases| phases[phase]).collect();
        let all = known.len() == self.phases.len();
        let may_be_unknown = is_by_ptrace() && ["reap", "queue", "setup"].contains(&PHASES[phase]);
        assert!(
            all || known.is_empty() || may_be_unknown,
            "{} is unknown for some",
            PHASES[phase]
        );
        (!known.is_empty()).then(|| median(known))
    }

    /// By how much a phase is longer than the workload's own amount: the median of that, child by child.
    fn median_excess_ns(&self, phase: usize) -> i64 {
        // A base workload with nothing to measure prints no amounts.
        let amounts = self.amounts.iter().copied().chain(std::iter::repeat(0));
        let pairs = self.phases.iter().zip(amounts);
        let excess: Vec<i64> = pairs
            .filter_map(|(phases, amount)| Some(phases[phase]? - amount))
            .collect();
        assert_eq!(excess.len(), self.phases.len(), "{} is unknown for some", PHASES[phase]);
        median(excess)
    }
}

/// Records both commands and compares the phases of their children.
#[track_caller]
pub fn assert_only_this_phase_grows(long_phase: &str, base: &[OsString], long: &[OsString]) {
    // On a shared machine, other processes take time during a measurement. A wrongly charged phase is wrong each time.
    assert_only_this_phase_grows_with(&[], long_phase, base, long);
}

/// The same with these flags of `record`.
#[track_caller]
pub fn assert_only_this_phase_grows_with(flags: &[&str], long_phase: &str, base: &[OsString], long: &[OsString]) {
    best_of_three(|| measure(flags, long_phase, base, long));
}

fn measure(flags: &[&str], long_phase: &str, base: &[OsString], long: &[OsString]) -> Result<(), String> {
    let (base, long) = (Observed::of(flags, base), Observed::of(flags, long));
    assert_eq!(long.phases.len(), long.amounts.len(), "an amount for each child");
    let index = PHASES
        .iter()
        .position(|phase| *phase == long_phase)
        .expect("one of the phases");

    let amount = median(long.amounts.clone());
    let tolerance = SMALLEST_TOLERANCE_NS.max(amount / 20);
    let error = long.median_excess_ns(index) - base.median_excess_ns(index);
    if error.abs() > tolerance {
        return Err(format!(
            "{long_phase} should have grown by {amount} ns, but is off by {error} ns; allowed are {tolerance} ns"
        ));
    }
    for (other, name) in PHASES.iter().enumerate().filter(|(other, _)| *other != index) {
        let (base, long) = (base.median_ns(other), long.median_ns(other));
        let in_one = base.is_some() != long.is_some();
        assert!(
            !in_one || (is_by_ptrace() && *name == "reap"),
            "{name} is known in both or in neither"
        );
        let growth = long.zip(base).map_or(0, |(long, base)| long - base);
        if growth > OTHERS_MAY_GROW_NS {
            return Err(format!(
                "{name} grew by {growth} ns, though only {long_phase} was made longer"
            ));
        }
    }
    Ok(())
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    *values.get(values.len() / 2).expect("the workload has children")
}
