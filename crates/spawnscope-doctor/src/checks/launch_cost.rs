//! Finds launches that take longer than they should on any machine, and the part of the launch that
//! is slow.

use crate::measure::LaunchCost;
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// If a launch takes longer than this, something is wrong with the machine.
const SLOW: Nanos = Nanos(50_000_000);

/// A part of a launch, what to look for if it is slow, and its time.
type Part = (&'static str, &'static str, Option<Nanos>);

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let cost = examination.measured.launch;
    for (what, time) in [
        ("a fork", cost.fork),
        ("a launch of a static program", cost.exec_static),
        ("a launch of a dynamic program", cost.exec_dynamic),
    ] {
        if time.is_none() {
            findings.add_not_examined(format!("{what}: it could not be timed, or took too long"));
        }
    }
    let Some(most) = longest(cost).filter(|most| *most > SLOW) else {
        return;
    };
    // If some launches were fast, the machine is only busy.
    if longest(examination.measured.quickest).is_some_and(|quickest| quickest <= SLOW) {
        findings.add_not_examined("whether launches are slow: the machine is too busy to measure it");
    } else if let Some(finding) = slow_launch_finding(cost, most) {
        findings.add(finding);
    }
}

fn longest(cost: LaunchCost) -> Option<Nanos> {
    let times = [cost.fork, cost.exec_static, cost.exec_dynamic];
    times.into_iter().flatten().max()
}

fn slow_launch_finding(cost: LaunchCost, most: Nanos) -> Option<Finding> {
    let parts = parts(cost);
    let (name, cause, _) = parts.iter().filter(|(.., time)| time.is_some()).max_by_key(|(.., time)| *time)?;
    Some(
        Finding::problem(format!("one launch takes {}, most of it in {name}", units::time(most)))
            .evidence(sentence(&parts))
            .evidence(format!("if a launch takes more than {}, something is wrong with the machine", units::time(SLOW)))
            .effect(Effect::measured(most, "each launch"))
            .fix(*cause)
            .fix("`spawnscope record -- CMD` shows the phases of each launch of a command")
            .fix_cost("nothing for the recording; the fix depends on the cause"),
    )
}

fn parts(cost: LaunchCost) -> [Part; 3] {
    [
        (
            "the fork",
            "in the kernel, look for a starved or emulated processor, memory pressure, hooks of security products on new processes",
            cost.fork,
        ),
        (
            "the exec",
            "in the exec, look for on-access scanners (`spawnscope doctor scanners`), security modules, slow disks",
            beyond(cost.exec_static, cost.fork),
        ),
        (
            "the dynamic loader",
            "in the dynamic loader, look for a broken cache, LD_ variables (`spawnscope doctor loader-cache loader-environment`), and \
             libraries on slow file systems",
            beyond(cost.exec_dynamic, cost.exec_static),
        ),
    ]
}

fn beyond(whole: Option<Nanos>, part: Option<Nanos>) -> Option<Nanos> {
    let (whole, part) = (whole?, part?);
    // If a part took longer than the whole, the difference is noise, or the files of the two
    // programs behave differently.
    (whole >= part).then(|| whole.since(part))
}

fn sentence(parts: &[Part]) -> String {
    let parts: Vec<String> =
        parts.iter().filter_map(|(name, _, time)| Some(format!("{name} {}", units::time((*time)?)))).collect();
    parts.join(", ")
}
