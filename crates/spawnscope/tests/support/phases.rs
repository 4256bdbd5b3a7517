//! Tests a phase with a workload that lengthens only that phase, by an amount that it measures
//! itself. The phase must grow by that amount, within 5 % or 1 ms, whichever is larger, and no
//! other phase may grow by more than 3 ms.

use std::ffi::OsString;

use super::attempts::best_of_three;
use super::launches::PHASES;
use super::run::{Record, uses_ptrace};
use super::workloads::path;

const MIN_TOLERANCE_NS: i64 = 1_000_000;
const MAX_GROWTH_OF_OTHERS_NS: i64 = 3_000_000;

/// Returns `limit`, or an eighth of the free memory in megabytes if that is less. On small
/// machines, less memory makes the phases long enough.
fn limited_megabytes(limit: u64) -> String {
    let memory = std::fs::read_to_string("/proc/meminfo").expect("/proc is mounted");
    let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = free.and_then(|free| free.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let eighth = kibibytes.expect("free memory in KiB") / 8 / 1024;
    limit.min(eighth).to_string()
}

/// Returns a command line: the paths of workloads, then plain words.
pub fn words(workloads: &[&str], plain: &[&str]) -> Vec<OsString> {
    let paths = workloads.iter().map(|workload| path(workload).into_os_string());
    paths.chain(plain.iter().map(OsString::from)).collect()
}

/// The phases of the children of a workload, and the amounts that the workload itself measured,
/// child by child.
struct Measurement {
    phases: Vec<[Option<i64>; PHASES.len()]>,
    amounts: Vec<i64>,
}

impl Measurement {
    fn record(flags: &[&str], command: &[OsString]) -> Measurement {
        let (truth, launches) = Record::new().flags(flags).truth_and_launches(command);
        let phases = truth.all("child").into_iter().map(|pid| {
            let launch = launches.with_pid(pid);
            PHASES.map(|phase| launch.phase_ns(phase))
        });
        let phases = phases.collect();
        Measurement { phases, amounts: truth.all("amount_ns") }
    }

    /// Returns the median of a phase, or `None` if it is unknown for all children. With ptrace,
    /// some phases are known only for some of the children: `reap`, and `queue` and `setup` of
    /// children that were preempted early.
    fn median_ns(&self, phase: usize) -> Option<i64> {
        let known: Vec<i64> = self.phases.iter().filter_map(|phases| phases[phase]).collect();
        let all = known.len() == self.phases.len();
        let may_be_unknown = uses_ptrace() && ["reap", "queue", "setup"].contains(&PHASES[phase]);
        assert!(all || known.is_empty() || may_be_unknown, "{} is unknown for some", PHASES[phase]);
        (!known.is_empty()).then(|| median(known))
    }

    /// Returns the median difference, child by child, between a phase and the amount that the
    /// workload measured.
    fn median_excess_ns(&self, phase: usize) -> i64 {
        // A base workload with nothing to measure prints no amounts.
        let amounts = self.amounts.iter().copied().chain(std::iter::repeat(0));
        let pairs = self.phases.iter().zip(amounts);
        let excess: Vec<i64> = pairs.filter_map(|(phases, amount)| Some(phases[phase]? - amount)).collect();
        assert_eq!(excess.len(), self.phases.len(), "{} is unknown for some", PHASES[phase]);
        median(excess)
    }
}

/// Records the workload that lengthens this phase.
#[track_caller]
pub fn assert_phase_grows(phase: &str) {
    // Only then does ptrace know this phase.
    let flags: &[&str] = if uses_ptrace() && phase == "create" { &["--launcher-calls"] } else { &[] };
    let mount_point = tempfile::tempdir().expect("a temporary directory");
    let megabytes = limited_megabytes(if phase == "create" { 2048 } else { 1024 });
    let [base, long] = ["base", "long"].map(|amount| match phase {
        "create" => words(&["long_create"], &[amount, &megabytes]),
        "queue" => words(&["long_queue"], &[amount]),
        "setup" => [words(&["long_setup"], &[amount]), words(&["tiny"], &[])].concat(),
        "exec" => {
            let program = [words(&["long_exec"], &[amount]), words(&["tiny"], &[])].concat();
            [program, vec![mount_point.path().into()]].concat()
        }
        "load" | "run" => words(&["launch_each", &format!("{phase}_{amount}")], &[]),
        "teardown" => words(&["long_teardown"], &[amount, &megabytes]),
        "reap" => words(&["long_reap"], &[amount]),
        unknown => panic!("no workload lengthens {unknown}"),
    });
    assert_only_this_phase_grows(flags, phase, &base, &long);
}

/// Records both commands with these flags, and compares the phases of their children.
#[track_caller]
pub fn assert_only_this_phase_grows(flags: &[&str], long_phase: &str, base: &[OsString], long: &[OsString]) {
    // On a shared machine, other processes take time during a measurement. A wrongly charged phase
    // is wrong each time.
    best_of_three(|| measure(flags, long_phase, base, long));
}

fn measure(flags: &[&str], long_phase: &str, base: &[OsString], long: &[OsString]) -> Result<(), String> {
    let (base, long) = (Measurement::record(flags, base), Measurement::record(flags, long));
    assert_eq!(long.phases.len(), long.amounts.len(), "an amount for each child");
    let index = PHASES.iter().position(|phase| *phase == long_phase).expect("one of the phases");

    let amount = median(long.amounts.clone());
    let tolerance = MIN_TOLERANCE_NS.max(amount / 20);
    let error = long.median_excess_ns(index) - base.median_excess_ns(index);
    if error.abs() > tolerance {
        return Err(format!(
            "{long_phase} should have grown by {amount} ns, but is off by {error} ns; allowed are {tolerance} ns"
        ));
    }
    for (other, name) in PHASES.iter().enumerate().filter(|(other, _)| *other != index) {
        let (base, long) = (base.median_ns(other), long.median_ns(other));
        let is_known_in_one = base.is_some() != long.is_some();
        assert!(
            !is_known_in_one || (uses_ptrace() && *name == "reap"),
            "{name} is known in only one of the recordings"
        );
        let growth = long.zip(base).map_or(0, |(long, base)| long - base);
        if growth > MAX_GROWTH_OF_OTHERS_NS {
            return Err(format!("{name} grew by {growth} ns, though only {long_phase} was made longer"));
        }
    }
    Ok(())
}

fn median(mut values: Vec<i64>) -> i64 {
    values.sort_unstable();
    *values.get(values.len() / 2).expect("the workload has children")
}
