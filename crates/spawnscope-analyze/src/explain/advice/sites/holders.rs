//! Evidence about where the time of a site is: in the launch tax, in start-up, in the work of its
//! programs, or in what they launch.

use std::collections::BTreeMap;

use super::Site;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::{launches, name, time};
use crate::model::launch::Outcome;
use crate::model::phases::Phase;
use spawnscope_data::event::Nanos;

/// Launches that use less than this share of their time on a CPU mostly wait.
const MOSTLY: f64 = 0.5;
/// A start-up is mentioned if it takes at least this share of the time of the launches.
const NOTABLE: f64 = 0.1;

/// Returns sentences about where the time of a site is.
pub(super) fn evidence(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Vec<String> {
    let all = &site.launches;
    let spent = context.spent_on(all);
    let charges = all.iter().map(|index| &context.path.launches[*index as usize]);
    let (own, tax) = charges.fold((0, 0), |(own, tax), each| (own + each.get(Phase::Run).0, tax + each.tax().0));
    let below = site.critical.since(Nanos(own + tax));
    let (takes, their, they_launch) = match all.len() {
        1 => ("it takes".to_owned(), "its", "it launches"),
        several => (format!("{} take", launches(several)), "their", "they launch"),
    };
    let mut parts =
        vec![format!("{} in {their} own run", time(Nanos(own))), format!("{} as start-up", time(Nanos(tax)))];
    if let Some((program, critical)) = largest_descendant(context, all) {
        parts.push(format!("{} in what {they_launch}, {} of it in {}", time(below), time(critical), name(program)));
    }
    let mut sentences =
        vec![format!("{takes} {} in all", time(spent)), format!("on the critical path: {}", parts.join(", "))];
    sentences.extend(start_up(context, all, spent));
    sentences.extend(waiting(context, all, below));
    sentences.extend(failures(context, all));
    sentences
}

/// Returns a sentence about launches that all failed with the same status. A status of 1 is an
/// answer for many programs.
fn failures(context: &RuleContext<'_, '_>, all: &[u32]) -> Option<String> {
    let first = context.launch(all[0]).outcome;
    let Outcome::Code(status) = first else { return None };
    let are_alike = all.len() > 1 && all.iter().all(|index| context.launch(*index).outcome == first);
    (are_alike && status > 1)
        .then(|| format!("all of them failed with status {status}: leave them out if their failure is expected"))
}

/// Returns a sentence about launches that mostly wait, and not for what they launch.
fn waiting(context: &RuleContext<'_, '_>, all: &[u32], below: Nanos) -> Option<String> {
    let used = all.iter().map(|index| context.launch(*index).cpu_phases.get(Phase::Run));
    let used = Nanos(used.collect::<Option<Vec<Nanos>>>()?.iter().map(|cpu| cpu.0).sum());
    let run = context.total_phase(all, Phase::Run);
    let is_waiting = ((used.0 + below.0) as f64) < MOSTLY * run.0 as f64;
    let they = if all.len() == 1 { "its run uses a CPU" } else { "their runs use a CPU" };
    is_waiting.then(|| {
        format!("{they} for only {}; the rest is a wait for a CPU, a disk, the network or a timer", time(used))
    })
}

/// Returns the program among the descendants with the most time on the critical path, and that
/// time.
fn largest_descendant<'a>(context: &RuleContext<'_, 'a>, all: &[u32]) -> Option<(&'a [u8], Nanos)> {
    let mut programs: BTreeMap<&[u8], u64> = BTreeMap::new();
    for step in context.walk(all).filter(|step| step.depth > 0) {
        let program = context.forest().launches[step.index].command.name;
        *programs.entry(program).or_default() += context.path.launches[step.index].total().0;
    }
    let largest = programs.into_iter().max_by_key(|(_, critical)| *critical);
    largest.filter(|(_, critical)| *critical > 0).map(|(program, critical)| (program, Nanos(critical)))
}

/// Returns a sentence about the recorded start-up, which every launch repeats.
fn start_up(context: &RuleContext<'_, '_>, all: &[u32], spent: Nanos) -> Option<String> {
    let known = all.iter().filter_map(|index| context.launch(*index).start_up.get());
    let start_up = Nanos(known.map(|start_up| start_up.0).sum());
    let is_notable = all.len() > 1 && start_up.0 as f64 >= NOTABLE * spent.0 as f64;
    is_notable
        .then(|| format!("before they first use an argument or read their input, they start up for {}", time(start_up)))
}
