//! Parents that poll for the end of a child and sleep in between, so that the child ends while the
//! parent sleeps.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::language;
use crate::explain::advice::phrases::{name, time};
use crate::explain::advice::thresholds::Candidate;
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::phases::Phase;
use crate::patterns::runtimes::Runtime;
use crate::predict::replay::activity::is_alone;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Minimum number of children whose end a parent slept through. Fewer may be a coincidence.
const MIN_REPETITIONS: usize = 3;
/// Maximum number of slices before the reaping that are examined.
const MAX_EXAMINED: usize = 8;

/// How often a parent slept while a child was alive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParentSleep {
    /// Once, and the child ended during this sleep.
    Once,
    /// Several times, and the child ended during the last sleep.
    Repeatedly,
}

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let slept = parent_sleeps(context);
    let mut candidates = context.candidates(|index, launch| {
        slept[index as usize]?;
        Some((launch.birth_command.name, launch.phases.get(Phase::Reap)?))
    });
    // A single sleep before a wait may be intended.
    candidates.retain(|Candidate { launches, .. }| {
        let mut slept = launches.iter().map(|launch| slept[*launch as usize]);
        launches.len() >= MIN_REPETITIONS || slept.any(|slept| slept == Some(ParentSleep::Repeatedly))
    });
    candidates.into_iter().map(|candidate| finding(context, candidate)).collect()
}

/// Returns for each launch how often its parent slept while the launch was alive. `None` if the
/// parent did not sleep when the launch ended, or if a sibling ran at the same time.
fn parent_sleeps(context: &RuleContext<'_, '_>) -> Vec<Option<ParentSleep>> {
    let forest = context.forest();
    let mut slept = vec![None; forest.launches.len()];
    for parent in 0..forest.launches.len() {
        let children = forest.children(parent);
        for (position, child) in children.iter().enumerate() {
            if is_alone(forest, children, position) {
                slept[*child] = parent_sleep(context, parent as u32, *child as u32);
            }
        }
    }
    slept
}

fn parent_sleep(context: &RuleContext<'_, '_>, parent: u32, child: u32) -> Option<ParentSleep> {
    let at = &context.launch(child).instants;
    let (created, zombie, reaped) = (at.created.get()?, at.zombie.get()?, at.reaped.get()?);
    let timelines = context.timelines();
    let slices = timelines.slices(timelines.threads[child as usize].creator.get().unwrap_or(parent));
    let before = slices.partition_point(|slice| slice.off < reaped);
    let last = slices.split_at(before).0.iter().rev().take(MAX_EXAMINED);
    let sleeps: Vec<Nanos> = last
        .take_while(|slice| slice.off >= created)
        .filter(|slice| external_wait_of(slice) == ExternalWait::Timer)
        .filter_map(|slice| Some(Nanos(slice.off.0 + slice.wake_span?.0)))
        .collect();
    let woken_too_late = sleeps.iter().any(|woken| *woken > zombie);
    let woken_in_time = sleeps.iter().any(|woken| *woken <= zombie);
    match (woken_too_late, woken_in_time) {
        (true, true) => Some(ParentSleep::Repeatedly),
        (true, false) => Some(ParentSleep::Once),
        (false, _) => None,
    }
}

fn finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let parent = name(candidate.name);
    let evidence = format!(
        "{} of {parent} ended while it slept, and waited for the next poll: a median of {}, {} in all",
        units::counted(candidate.launches.len() as u64, "child", "children"),
        time(context.median_phase(&candidate.launches, Phase::Reap)),
        time(candidate.max_saving),
    );
    let runtime = Runtime::of_parent(context.forest(), candidate.launches[0]);
    let title = format!("{parent} sleeps while ended children wait to be reaped");
    Finding::measured("late-reaping", title, candidate.launches)
        .evidence(evidence)
        .with_example(context)
        .fix_lines(language(runtime).wait.iter().copied())
        .recipe("late-reaping", &[], &[])
        .predicted_by(Change::ReapNow, format!("--reap-now=parent={parent}"))
}
