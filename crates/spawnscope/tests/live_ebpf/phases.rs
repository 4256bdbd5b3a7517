//! Each phase against a workload that makes just that phase long by an amount it measures itself: the phase must have
//! grown by that amount within 5 % or 1 ms, whichever is larger, and no other phase by more than 3 ms.

use std::ffi::OsString;

use crate::support::attempts::best_of_three;
use crate::support::launches::{Launch, PHASES};
use crate::support::recording::launches;
use crate::support::run::Record;
use crate::support::workloads::{Truth, path};
use crate::support::{apply, live_test};

const SMALLEST_TOLERANCE_NS: i64 = 1_000_000;
const OTHERS_MAY_GROW_NS: i64 = 3_000_000;

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn create_grows_with_the_memory_of_the_parent() {
    let megabytes = at_most_megabytes(2048);
    let with = |amount: &str| words(&["long_create"], &[amount, &megabytes]);
    only_this_phase_grows("create", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc, Realtime)]
fn queue_grows_while_the_parent_keeps_the_only_cpu() {
    let with = |amount: &str| words(&["long_queue"], &[amount]);
    only_this_phase_grows("queue", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn setup_grows_when_the_child_sleeps_before_exec() {
    let with = |amount: &str| [words(&["long_setup"], &[amount]), words(&["tiny"], &[])].concat();
    only_this_phase_grows("setup", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify)]
fn exec_grows_behind_a_permission_scanner() {
    let mount_point = tempfile::tempdir().expect("a temporary directory");
    let with = |amount: &str| {
        let program = [words(&["long_exec"], &[amount]), words(&["tiny"], &[])].concat();
        [program, vec![mount_point.path().into()]].concat()
    };
    only_this_phase_grows("exec", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn load_grows_with_a_slow_relocation() {
    only_this_phase_grows(
        "load",
        &words(&["launch_each", "load_base"], &[]),
        &words(&["launch_each", "load_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn run_grows_when_the_program_sleeps() {
    only_this_phase_grows(
        "run",
        &words(&["launch_each", "run_base"], &[]),
        &words(&["launch_each", "run_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn teardown_grows_with_the_memory_of_the_child() {
    let megabytes = at_most_megabytes(1024);
    let with = |amount: &str| words(&["long_teardown"], &[amount, &megabytes]);
    only_this_phase_grows("teardown", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn reap_grows_when_the_parent_waits_late() {
    let with = |amount: &str| words(&["long_reap"], &[amount]);
    only_this_phase_grows("reap", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_look_with_wnowait_is_not_the_reaping() {
    let with = |amount: &str| words(&["long_reap"], &[amount, "look"]);
    only_this_phase_grows("reap", &with("base"), &with("long"));
}

/// So much memory, or an eighth of what is free where that is less: small machines have long phases with less, too.
fn at_most_megabytes(most: u64) -> String {
    let memory = std::fs::read_to_string("/proc/meminfo").expect("/proc is mounted");
    let free = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes = free.and_then(|free| free.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let eighth = kibibytes.expect("free memory in KiB") / 8 / 1024;
    most.min(eighth).to_string()
}

/// A command line: workloads, then plain words.
fn words(workloads: &[&str], plain: &[&str]) -> Vec<OsString> {
    let paths = workloads.iter().map(|workload| path(workload).into_os_string());
    paths.chain(plain.iter().map(OsString::from)).collect()
}

/// What the children of one workload cost: by phase, and by the workload's own measurement, child by child.
struct Observed {
    phases: Vec<[Option<i64>; PHASES.len()]>,
    amounts: Vec<i64>,
}

impl Observed {
    fn of(command: &[OsString]) -> Observed {
        let record = Record::new();
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

    /// The median of a phase, `None` when it is unknown for all children.
    fn median_ns(&self, phase: usize) -> Option<i64> {
        let known: Vec<i64> = self.phases.iter().filter_map(|phases| phases[phase]).collect();
        let all = known.len() == self.phases.len();
        assert!(all || known.is_empty(), "{} is unknown for some", PHASES[phase]);
        all.then(|| median(known))
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

#[track_caller]
fn only_this_phase_grows(long_phase: &str, base: &[OsString], long: &[OsString]) {
    // On a shared machine, other processes take time during a measurement. A wrongly charged phase is wrong each time.
    best_of_three(|| measure(long_phase, base, long));
}

fn measure(long_phase: &str, base: &[OsString], long: &[OsString]) -> Result<(), String> {
    let (base, long) = (Observed::of(base), Observed::of(long));
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
        assert_eq!(base.is_some(), long.is_some(), "{name} is known in both or in neither");
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
