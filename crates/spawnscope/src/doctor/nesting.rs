//! Whether one hypervisor runs inside another, as far as it shows in the time of an instruction that leaves the guest: CPUID, which
//! the outer one then has to pass on to the inner one.

use super::environment::Environment;
use super::{Machine, Measured};
use crate::event::{Constant, Nanos};
use crate::units;

/// Below, the instruction does not leave the guest: a processor answers it in 30 to 100 ns.
const LEAVES_FROM: Nanos = Nanos(200);
/// One exit and its answer take 0.5 to 2 us. In a nested guest there are at least two, and the inner hypervisor's own exits.
const SINGLE_UP_TO: Nanos = Nanos(2_500);
/// A single hypervisor that answers by itself does not take so long.
const NESTED_FROM: Nanos = Nanos(8_000);
/// Flags of processors in guests with encrypted memory, where CPUID is first a fault, and each exit longer.
const ENCRYPTED: [&str; 3] = ["tdx_guest", "sev_es", "sev_snp"];
/// A hypervisor that may have the instruction answered by a program.
const SLOW_BY_ITSELF: &str = "VirtualBox";

/// What can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nesting {
    Nested,
    Single,
    Unknown,
}

/// What can be told of a guest, and a sentence that shows it; `None` where there is no hypervisor.
pub(super) fn of(machine: &Machine, environment: &Environment, measured: &Measured) -> Option<(Nesting, String)> {
    let hypervisor = environment.hypervisor.as_ref()?;
    let unknown = |why: String| {
        let sentence = format!("whether one hypervisor runs inside another is unknown: {why}");
        Some((Nesting::Unknown, sentence))
    };
    // A busy machine only adds to it.
    let Some(time) = measured.least(Constant::Cpuid).map(|ns| Nanos(ns as u64)) else {
        return unknown("no instruction that leaves the guest could be timed".to_owned());
    };
    let took = format!("CPUID, which leaves the guest, takes {}", units::time(time));
    if time < LEAVES_FROM {
        return unknown(format!(
            "CPUID takes {}, so it does not leave the guest",
            units::time(time)
        ));
    }
    if time <= SINGLE_UP_TO {
        let sentence = format!("{took}: one hypervisor answers it, and no other is in between");
        return Some((Nesting::Single, sentence));
    }
    if let Some(why) = why_slow_by_itself(machine, hypervisor) {
        return unknown(format!("{took}, and {why}"));
    }
    if time < NESTED_FROM {
        return unknown(format!(
            "{took}; up to {} it is one hypervisor's answer, from {} on most likely that of two",
            units::time(SINGLE_UP_TO),
            units::time(NESTED_FROM)
        ));
    }
    let sentence = format!(
        "{took}: most likely, one hypervisor runs inside another, since one alone answers it within {}",
        units::time(SINGLE_UP_TO)
    );
    Some((Nesting::Nested, sentence))
}

/// What makes an exit long without a second hypervisor.
fn why_slow_by_itself(machine: &Machine, hypervisor: &str) -> Option<String> {
    let processor = machine.text("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    let has = |wanted: &&str| flags.split_whitespace().any(|flag| flag == *wanted);
    if let Some(flag) = ENCRYPTED.into_iter().find(has) {
        return Some(format!("is slow in each guest with encrypted memory ({flag})"));
    }
    hypervisor
        .contains(SLOW_BY_ITSELF)
        .then(|| format!("{hypervisor} can be as slow by itself"))
}
