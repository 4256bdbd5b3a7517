//! Changes for parents that poll for the end of a child and notice it late.

use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::phases::Phase;
use crate::model::timeline::{returned_at, woken_at};
use crate::model::tree::Forest;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;

pub(super) fn without_late_reaping(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let slept = slept_through_end(context, launch);
    if slept {
        adjustments.reap_at_once(launch);
    }
    slept
}

fn slept_through_end(context: WhatIf<'_, '_>, launch: u32) -> bool {
    let WhatIf { forest, timelines, .. } = context;
    let at = &context.launch(launch).instants;
    let (Some(parent), Some(zombie), Some(reaped)) = (forest.parent(launch as usize), at.zombie.get(), at.reaped.get())
    else {
        return false;
    };
    let creator = timelines.threads[launch as usize].creator.get().unwrap_or(parent as u32);
    let slices = timelines.slices(creator);
    let first = slices.partition_point(|slice| woken_at(slice).or(returned_at(slice)).unwrap_or(slice.off) <= zombie);
    let mut until_reaped = slices.split_at(first).1.iter().take_while(|slice| slice.off < reaped);
    until_reaped.any(|slice| external_wait_of(&slice) == ExternalWait::Timer)
}

/// Maximum number of children of a process that are searched for the child that it waits for.
const MAX_SIBLINGS: usize = 5_000;

/// Returns how long a `sleep` continued after the end of the child that its parent polls for.
/// `None` if no child ended during the sleep, or if another sleep follows, so that the parent
/// waited for something else.
pub fn overslept(forest: &Forest<'_>, sleep: u32) -> Option<Nanos> {
    let sleep = sleep as usize;
    let (siblings, position) = forest.siblings(sleep)?;
    if siblings.len() > MAX_SIBLINGS {
        return None;
    }
    let launch = &forest.launches[sleep];
    let (from, to) = (launch.start()?, launch.instants.exit.get()?);
    // If another sleep follows, with at most one program in between that tested the condition, the
    // parent waited for something else.
    let follows = match siblings[position + 1..] {
        [next, ..] if have_same_arguments(forest, next, sleep) => true,
        [test, next, ..] if have_same_arguments(forest, next, sleep) => {
            let ended = forest.launches[test].instants.zombie.get();
            ended.is_some_and(|ended| forest.launches[next].start().is_none_or(|start| ended <= start))
        }
        _ => false,
    };
    if follows {
        return None;
    }
    let ends = siblings[..position].iter().filter(|sibling| !have_same_arguments(forest, **sibling, sleep));
    let ends = ends.filter_map(|sibling| forest.launches[*sibling].instants.zombie.get());
    let last = ends.filter(|end| (from..to).contains(end)).max()?;
    Some(to.since(last))
}

fn have_same_arguments(forest: &Forest<'_>, one: usize, other: usize) -> bool {
    let [one, other] = [one, other].map(|launch| forest.launches[launch].execs.last().map(|exec| exec.argv()));
    one == other
}

/// Ends a sleep when the child that the parent polls for ends.
pub(super) fn wake_in_time(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let run = context.launch(launch).phases.ns(Phase::Run);
    let late = overslept(context.forest, launch).filter(|_| run > 0.0);
    if let Some(late) = late {
        adjustments.scale(launch, Phase::Run, (run - late.0 as f64).max(0.0) / run);
    }
    late.is_some()
}
