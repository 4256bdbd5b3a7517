//! Whether one hypervisor runs inside another, judged by the time of CPUID. This instruction causes a VM exit; under nesting, the outer
//! hypervisor must first pass the exit on to the inner one.

use super::environment::Environment;
use super::{Machine, Measured};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::units;

/// If it takes less, the instruction does not cause a VM exit: a processor executes it in 30 to 100 ns.
const MIN_EXIT_TIME: Nanos = Nanos(200);
/// One exit and its handling take 0.5 to 2 us. A nested guest needs at least two, and the inner hypervisor causes exits of its own.
const SINGLE_UP_TO: Nanos = Nanos(2_500);
/// A single hypervisor that handles the exit in the kernel is faster than this.
const NESTED_FROM: Nanos = Nanos(8_000);
/// CPU flags of guests with encrypted memory, where CPUID first raises a fault, and each exit takes longer.
const ENCRYPTED: [&str; 3] = ["tdx_guest", "sev_es", "sev_snp"];
/// A hypervisor that may handle the exit in a user-space program.
const SLOW_BY_ITSELF: &str = "VirtualBox";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nesting {
    Nested,
    Single,
    Unknown,
}

/// The verdict for a guest, and a sentence of evidence; `None` if there is no hypervisor.
pub(super) fn of(machine: &Machine, environment: &Environment, measured: &Measured) -> Option<(Nesting, String)> {
    let hypervisor = environment.hypervisor.as_ref()?;
    let unknown = |why: String| {
        let sentence = format!("nested virtualization: unknown ({why})");
        Some((Nesting::Unknown, sentence))
    };
    // The lowest time, because a busy machine only adds to it.
    let Some(time) = measured.least(Constant::Cpuid).map(|ns| Nanos(ns as u64)) else {
        return unknown("CPUID could not be timed".to_owned());
    };
    let took = format!("CPUID, which causes a VM exit, takes {}", units::time(time));
    if time < MIN_EXIT_TIME {
        return unknown(format!(
            "CPUID takes {}, so it does not cause a VM exit",
            units::time(time)
        ));
    }
    if time <= SINGLE_UP_TO {
        let sentence = format!("{took}: one hypervisor handles it, without another in between");
        return Some((Nesting::Single, sentence));
    }
    if let Some(why) = why_slow_by_itself(machine, hypervisor) {
        return unknown(format!("{took}, but {why}"));
    }
    if time < NESTED_FROM {
        return unknown(format!(
            "{took}; at most {} indicates one hypervisor; {} or more, probably two",
            units::time(SINGLE_UP_TO),
            units::time(NESTED_FROM)
        ));
    }
    let sentence = format!(
        "{took}: most likely, one hypervisor runs inside another, since a single one handles it within {}",
        units::time(SINGLE_UP_TO)
    );
    Some((Nesting::Nested, sentence))
}

/// Why exits may be slow without a second hypervisor.
fn why_slow_by_itself(machine: &Machine, hypervisor: &str) -> Option<String> {
    let processor = machine.text("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    let has = |wanted: &&str| flags.split_whitespace().any(|flag| flag == *wanted);
    if let Some(flag) = ENCRYPTED.into_iter().find(has) {
        return Some(format!("it is slow in all guests with encrypted memory ({flag})"));
    }
    hypervisor
        .contains(SLOW_BY_ITSELF)
        .then(|| format!("{hypervisor} alone can be that slow"))
}
