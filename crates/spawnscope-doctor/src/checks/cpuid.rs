//! Hypervisors that emulate the CPUID instruction slowly. The C library executes dozens of CPUID
//! instructions at the start of each program. The instruction causes a VM exit. If one hypervisor
//! runs inside another, the exit goes to the outer one, which must pass it on to the inner one, so
//! the time of the instruction also shows nested virtualization.

use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::units;

/// If all CPUID instructions of a program start take less, there is no hypervisor, or a fast one.
const MIN_REPORTED: Nanos = Nanos(50_000);
/// If all CPUID instructions of a program start take this long, they cost more than the rest of the
/// launch, which is a problem.
const MIN_PROBLEM: Nanos = Nanos(2_000_000);
/// Up to this time, only one hypervisor is involved. One exit and its handling take 0.5 to 2 us. In
/// a nested guest, CPUID needs at least two exits, and the inner hypervisor causes further ones.
const MAX_SINGLE_TIME: Nanos = Nanos(2_500);
/// If CPUID takes at least this long, hypervisors are probably nested: a single one that handles
/// the exit in the kernel is faster.
const MIN_NESTED_TIME: Nanos = Nanos(8_000);
/// CPU flags of guests with encrypted memory. In such guests CPUID first raises a fault, and each
/// exit takes longer.
const ENCRYPTION_FLAGS: [&str; 3] = ["tdx_guest", "sev_es", "sev_snp"];
/// A hypervisor that may handle the exit in a user-space program.
const SLOW_HYPERVISOR: &str = "VirtualBox";

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(one) = examination.measured.median_ns(Constant::Cpuid) else {
        if cfg!(target_arch = "x86_64") {
            findings.add_not_examined("the instruction could not be timed");
        }
        return;
    };
    let Some(all) = examination.measured.median_ns(Constant::Identify) else {
        findings.add_not_examined(
            "the instructions at the start of a program could not be counted: that needs ptrace and /bin/true",
        );
        return;
    };
    let (count, all) = ((all / one).round(), Nanos(all as u64));
    if all < MIN_REPORTED {
        return;
    }
    // The lowest time shows the number of exits, because a busy machine only adds time.
    let least = Nanos(examination.measured.min_ns(Constant::Cpuid).unwrap_or(one) as u64);
    let hypervisor = examination.environment.hypervisor.as_deref();
    let finding = Finding::problem_if(all >= MIN_PROBLEM, "the hypervisor answers CPUID instructions slowly")
        .evidence(format!(
            "one CPUID takes {}; on bare metal, it takes a few tens of ns",
            units::time(Nanos(one as u64))
        ))
        .evidence(format!(
            "at the start of each program, the C library queries the processor's features and caches: {count} CPUID instructions, counted here"
        ))
        .evidence_if(hypervisor.map(|hypervisor| nesting_sentence(examination.machine, hypervisor, least)))
        .effect(Effect::modelled(all, "each start of a program that uses this C library"))
        .fix("in the guest, the only fix is fewer launches; programs that use musl or Go's run time execute fewer CPUID instructions")
        .fix("the operator of the hypervisor can check whether it runs inside another one, which makes each exit slower")
        .fix_cost("another machine");
    findings.add(finding);
}

/// Returns whether one hypervisor runs inside another, with the evidence. `time` is that of a CPUID
/// instruction.
fn nesting_sentence(machine: &Machine, hypervisor: &str, time: Nanos) -> String {
    let took = format!("CPUID, which causes a VM exit, takes {}", units::time(time));
    let (single, nested) = (units::time(MAX_SINGLE_TIME), units::time(MIN_NESTED_TIME));
    if time <= MAX_SINGLE_TIME {
        format!("{took}: one hypervisor handles it, without another in between")
    } else if let Some(why) = why_slow_by_itself(machine, hypervisor) {
        format!("nested virtualization: unknown ({took}, but {why})")
    } else if time < MIN_NESTED_TIME {
        format!(
            "nested virtualization: unknown ({took}; at most {single} indicates one hypervisor, {nested} or more probably two)"
        )
    } else {
        format!(
            "{took}: most likely, one hypervisor runs inside another, since a single one handles it within {single}"
        )
    }
}

/// Returns why exits may be slow without a second hypervisor, if there is a reason.
fn why_slow_by_itself(machine: &Machine, hypervisor: &str) -> Option<String> {
    let processor = machine.text("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    if let Some(flag) = flags.split_whitespace().find(|flag| ENCRYPTION_FLAGS.contains(flag)) {
        return Some(format!("it is slow in all guests with encrypted memory ({flag})"));
    }
    hypervisor.contains(SLOW_HYPERVISOR).then(|| format!("{hypervisor} alone can be that slow"))
}
