//! A hypervisor that answers the CPUID instruction slowly: the C library asks dozens of them at each program's start.

use super::{Check, Run};
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::{Constant, Nanos};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "cpuid",
    looks_at: "CPUID instructions, timed: programs ask dozens at their start",
    run: Run::Looking(run),
};

/// What glibc 2.36 asks at a program's start, counted by stepping through it.
const ASKED: f64 = 43.0;
/// Below, there is no hypervisor, or a quick one.
const TOLD_FROM: Nanos = Nanos(50_000);
/// From here on it is more than a launch itself costs.
const LARGE: Nanos = Nanos(2_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(one) = examination.measured.constant(Constant::Cpuid) else {
        if cfg!(target_arch = "x86_64") {
            findings.unseen("the instruction could not be timed");
        }
        return;
    };
    let all = Nanos((one * ASKED) as u64);
    if all < TOLD_FROM {
        return;
    }
    let finding = Finding::problem_if(all >= LARGE, "the hypervisor answers CPUID instructions slowly")
        .evidence(format!(
            "one takes {}; a processor without a hypervisor answers in some tens of nanoseconds",
            units::time(Nanos(one as u64))
        ))
        .evidence(format!(
            "glibc asks for the sizes of caches at the start of each program: {ASKED} times in 2.36, where it was counted"
        ))
        .evidence_if(examination.nesting().map(|(_, sentence)| sentence))
        .effect(Effect::modelled(all, "each start of a program that uses glibc"))
        .fix("from inside nothing can be done but to launch less; programs that use musl, or Go's own run time, ask less")
        .fix("whoever runs the hypervisor can see whether it runs inside another one, which makes each exit slower")
        .fix_cost("another machine");
    findings.add(finding);
}
