//! Detects by the time of the CPUID instruction whether one hypervisor runs inside another. The
//! instruction causes a VM exit. If hypervisors are nested, the exit goes to the outer one, which
//! must pass it on to the inner one. The limits were chosen, and tested on made-up times only.

use super::environment::Environment;
use super::{Machine, Measured};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::units;

/// A CPUID instruction that takes less does not cause a VM exit: a processor itself executes CPUID in 30 to 100 ns.
const MIN_EXIT_TIME: Nanos = Nanos(200);
/// Up to this time, only one hypervisor is involved. One exit and its handling take 0.5 to 2 us. In a nested guest, CPUID needs at least
/// two exits, and the inner hypervisor causes further ones.
const MAX_SINGLE_TIME: Nanos = Nanos(2_500);
/// If CPUID takes at least this long, hypervisors are probably nested: a single one that handles the exit in the kernel is faster.
const MIN_NESTED_TIME: Nanos = Nanos(8_000);
/// CPU flags of guests with encrypted memory. In such guests CPUID first raises a fault, and each exit takes longer.
const ENCRYPTION_FLAGS: [&str; 3] = ["tdx_guest", "sev_es", "sev_snp"];
/// A hypervisor that may handle the exit in a user-space program.
const SLOW_HYPERVISOR: &str = "VirtualBox";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nesting {
    Nested,
    Single,
    Unknown,
}

/// Returns whether hypervisors are nested, and a sentence of evidence; `None` if there is no hypervisor.
pub(super) fn detect(machine: &Machine, environment: &Environment, measured: &Measured) -> Option<(Nesting, String)> {
    let hypervisor = environment.hypervisor.as_ref()?;
    // Uses the lowest time, because a busy machine only adds time.
    let Some(time) = measured.min_ns(Constant::Cpuid).map(|ns| Nanos(ns as u64)) else {
        return unknown("CPUID could not be timed");
    };
    let took = format!("CPUID, which causes a VM exit, takes {}", units::time(time));
    if time < MIN_EXIT_TIME {
        return unknown(&format!("CPUID takes {}, so it does not cause a VM exit", units::time(time)));
    }
    if time <= MAX_SINGLE_TIME {
        let sentence = format!("{took}: one hypervisor handles it, without another in between");
        return Some((Nesting::Single, sentence));
    }
    if let Some(why) = why_slow_by_itself(machine, hypervisor) {
        return unknown(&format!("{took}, but {why}"));
    }
    if time < MIN_NESTED_TIME {
        return unknown(&format!(
            "{took}; at most {} indicates one hypervisor, {} or more probably two",
            units::time(MAX_SINGLE_TIME),
            units::time(MIN_NESTED_TIME)
        ));
    }
    let sentence = format!(
        "{took}: most likely, one hypervisor runs inside another, since a single one handles it within {}",
        units::time(MAX_SINGLE_TIME)
    );
    Some((Nesting::Nested, sentence))
}

fn unknown(why: &str) -> Option<(Nesting, String)> {
    Some((Nesting::Unknown, format!("nested virtualization: unknown ({why})")))
}

/// Returns why exits may be slow without a second hypervisor, if there is a reason.
fn why_slow_by_itself(machine: &Machine, hypervisor: &str) -> Option<String> {
    let processor = machine.text("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    let flags: Vec<&str> = flags.split_whitespace().collect();
    if let Some(flag) = ENCRYPTION_FLAGS.into_iter().find(|flag| flags.contains(flag)) {
        return Some(format!("it is slow in all guests with encrypted memory ({flag})"));
    }
    hypervisor.contains(SLOW_HYPERVISOR).then(|| format!("{hypervisor} alone can be that slow"))
}
