//! Whether a launch takes more than it may on any machine, and which part of it does.

use super::{Check, Run};
use crate::doctor::measure::LaunchCost;
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "launch-cost",
    looks_at: "a fork, an exec of a static and of a dynamic program, timed",
    run: Run::Looking(run),
};

/// A machine on which a launch takes longer has something wrong with it.
const DEAR: Nanos = Nanos(50_000_000);

/// A part of a launch, what makes it dear, and what to look at.
type Part = (&'static str, &'static str, Option<Nanos>);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let cost = examination.measured.launch;
    for (what, time) in [
        ("a fork", cost.fork),
        ("a launch of a static program", cost.exec_static),
        ("a launch of a dynamic program", cost.exec_dynamic),
    ] {
        if time.is_none() {
            findings.unseen(format!("{what} could not be timed, or took too long"));
        }
    }
    let Some(most) = dearest(cost).filter(|most| *most > DEAR) else {
        return;
    };
    // A launch that can be quick is not dear.
    if dearest(examination.measured.quickest).is_some_and(|quickest| quickest <= DEAR) {
        findings.unseen("whether launches are slow: the machine is too busy to measure");
    } else if let Some(finding) = dear(cost, most) {
        findings.add(finding);
    }
}

fn dearest(cost: LaunchCost) -> Option<Nanos> {
    let times = [cost.fork, cost.exec_static, cost.exec_dynamic];
    times.into_iter().flatten().max()
}

fn dear(cost: LaunchCost, most: Nanos) -> Option<Finding> {
    let parts = parts(cost);
    let (name, cause, _) = parts
        .iter()
        .filter(|(.., time)| time.is_some())
        .max_by_key(|(.., time)| *time)?;
    Some(
        Finding::problem(format!("one launch takes {}, most of it in {name}", units::time(most)))
            .evidence(sentence(&parts))
            .evidence(format!(
                "more than {} means that something is wrong with a machine",
                units::time(DEAR)
            ))
            .effect(Effect::measured(most, "each launch"))
            .fix(*cause)
            .fix("`spawnscope record -- CMD` shows the phases of each launch of a command")
            .fix_cost("nothing to look; what then is to be changed depends on the cause"),
    )
}

fn parts(cost: LaunchCost) -> [Part; 3] {
    let beyond = |whole: Option<Nanos>, part: Option<Nanos>| {
        let (whole, part) = (whole?, part?);
        // A part that is longer than the whole is chance, or another file's.
        (whole >= part).then(|| whole.since(part))
    };
    [
        (
            "the fork",
            "the kernel's part: look for a starved or emulated processor, memory pressure, hooks of security products on new processes",
            cost.fork,
        ),
        (
            "the exec",
            "the exec itself: look for on-access scanners (`spawnscope doctor scanners`), security modules, slow disks",
            beyond(cost.exec_static, cost.fork),
        ),
        (
            "the dynamic loader",
            "the dynamic loader: look for a missing ld.so.cache and for LD_ variables (`spawnscope doctor loader-cache loader-environment`), and for \
             libraries on slow file systems",
            beyond(cost.exec_dynamic, cost.exec_static),
        ),
    ]
}

fn sentence(parts: &[Part]) -> String {
    let parts: Vec<String> = parts
        .iter()
        .filter_map(|(name, _, time)| Some(format!("{name} {}", units::time((*time)?))))
        .collect();
    parts.join(", ")
}
