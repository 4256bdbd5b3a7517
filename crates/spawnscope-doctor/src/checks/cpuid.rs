//! Hypervisors that emulate the CPUID instruction slowly. The C library executes dozens of CPUID instructions at the start of each program.

use super::{Check, Run};
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "cpuid",
    examines: "time of a CPUID instruction; each program executes dozens at its start",
    run: Run::Reading(run),
};

/// If all CPUID instructions of a program start take less, there is no hypervisor, or a fast one.
const MIN_REPORTED: Nanos = Nanos(50_000);
/// If all CPUID instructions of a program start take this long, they cost more than the rest of the launch, which is a problem.
const MIN_PROBLEM: Nanos = Nanos(2_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
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
    let finding = Finding::problem_if(all >= MIN_PROBLEM, "the hypervisor answers CPUID instructions slowly")
        .evidence(format!(
            "one CPUID takes {}; on bare metal, it takes a few tens of ns",
            units::time(Nanos(one as u64))
        ))
        .evidence(format!(
            "at the start of each program, the C library queries the processor's features and caches: {count} CPUID instructions, counted here"
        ))
        .evidence_if(examination.nesting().map(|(_, sentence)| sentence))
        .effect(Effect::modelled(all, "each start of a program that uses this C library"))
        .fix("in the guest, the only fix is fewer launches; programs that use musl or Go's run time execute fewer CPUID instructions")
        .fix("the operator of the hypervisor can check whether it runs inside another one, which makes each exit slower")
        .fix_cost("another machine");
    findings.add(finding);
}
