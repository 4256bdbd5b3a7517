//! Sleeps in place of a wait. Scripts that poll: `while kill -0 "$pid"; do sleep 1; done`; a script
//! can wait for the end of a process or for a change to a file instead. Parents that poll for the
//! end of a child and sleep in between, so that the child ends while the parent sleeps.

use std::collections::BTreeMap;

use crate::explain::advice::context::{Candidate, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::languages::language;
use crate::explain::advice::phrases::{name, time};
use crate::explain::advice::tables::case;
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::grouped::grouped;
use crate::model::launch::Outcome;
use crate::model::phases::Phase;
use crate::patterns::runtimes::Runtime;
use crate::predict::replay::activity::is_alone;
use crate::predict::whatif::changes::{Change, overslept};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Id of the findings about scripts that poll.
pub(in crate::explain::advice) const SLEEP_LOOP: &str = "sleep-loop";
const MAX_LOOPS: usize = 2;
/// Minimum number of equal sleeps by one process, or of children whose end a parent slept through.
/// Fewer may be a coincidence. The number is small because a few long sleeps can take most of the
/// wall.
const MIN_REPETITIONS: usize = 3;
/// Fewer sleeps count if they take at least this share of the wall.
const LARGE_SHARE: f64 = 0.1;
/// The same for a single sleep.
const MAJORITY: f64 = 0.3;
/// Maximum number of slices before the reaping that are examined.
const MAX_EXAMINED: usize = 8;

pub(super) fn in_loops(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut loops: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let sleeps = forest.children(parent).iter().filter_map(|index| {
            let launch = &forest.launches[*index];
            let [exec] = &launch.execs[..] else { return None };
            let pause = exec.arguments().nth(1).filter(|_| launch.command.name == b"sleep")?;
            Some(((launch.birth_command.name, pause), *index as u32))
        });
        let is_frequent = |all: &[u32]| all.len() >= MIN_REPETITIONS || holds_the_wall(context, all);
        let frequent = grouped(sleeps).into_iter().filter(|(_, all)| is_frequent(all));
        frequent.for_each(|(key, mut all)| loops.entry(key).or_default().append(&mut all));
    }
    // A single sleep beside a loop is more likely what the loop waits for.
    if loops.values().any(|all| all.len() > 1) {
        loops.retain(|_, all| all.len() > 1);
    }
    let loops = context.longest(loops, MAX_LOOPS);
    loops.map(|((_, pause), all)| in_loop(context, pause, all)).collect()
}

/// Whether a few sleeps take so much of the wall that each of them counts.
fn holds_the_wall(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let share = if all.len() > 1 { LARGE_SHARE } else { MAJORITY };
    context.total_phase(all, Phase::Run) >= context.share_of_wall(share)
}

fn in_loop(context: &RuleContext<'_, '_>, pause: &[u8], mut all: Vec<u32>) -> Finding {
    all.sort_unstable();
    let late: Vec<u64> =
        all.iter().filter_map(|index| overslept(context.forest(), *index)).map(|late| late.0).collect();
    // Without a known event, nothing shows when the sleep could have ended.
    let is_unknown = late.is_empty() && holds_the_wall(context, &all);
    let is_interval = is_unknown && is_between_work(context, &all);
    let cases = [case(is_unknown, "unknown"), case(is_interval, "interval"), case(!late.is_empty(), "late")];
    let values = [
        ("count", &units::count(all.len() as u64)[..]),
        ("pause", &name(pause)),
        ("slept", &time(context.total_phase(&all, Phase::Run))),
        ("continued", &units::counted(late.len() as u64, "sleep continued", "sleeps continued")),
        ("overslept", &time(Nanos(late.iter().sum()))),
    ];
    Finding::of(context, SLEEP_LOOP, all, &cases, &values)
        .predicted_by(if is_unknown { Change::Remove } else { Change::WakeInTime }, "")
}

/// Whether the parent launches programs between most of its pauses, and all succeed: no failure
/// shows that it waits for an event. A monitor does that.
fn is_between_work(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let rounds = all.windows(2).filter_map(|pair| {
        let (siblings, at) = context.forest().siblings(pair[0] as usize)?;
        Some(siblings[at + 1..].iter().take_while(|launch| **launch != pair[1] as usize).collect::<Vec<_>>())
    });
    let does_work = |round: &Vec<&usize>| {
        let mut programs = round.iter().map(|launch| context.forest().launches[**launch].outcome);
        !round.is_empty() && programs.all(|outcome| matches!(outcome, Outcome::Code(0) | Outcome::Unknown))
    };
    rounds.filter(does_work).count() * 2 >= all.len()
}

/// How often a parent slept while a child was alive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ParentSleep {
    /// Once, and the child ended during this sleep.
    Once,
    /// Several times, and the child ended during the last sleep.
    Repeatedly,
}

pub(super) fn before_reaping(context: &RuleContext<'_, '_>) -> Vec<Finding> {
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
    let finding = |Candidate { name: parent, launches, max_saving }: Candidate<'_>| {
        let values = [
            ("children", &units::counted(launches.len() as u64, "child", "children")[..]),
            ("median", &time(context.median_phase(&launches, Phase::Reap))),
            ("slept", &time(max_saving)),
        ];
        let wait = language(Runtime::of_parent(context.forest(), launches[0])).wait;
        Finding::of(context, "late-reaping", launches, &[], &values)
            .fix_lines(wait)
            .predicted_by(Change::ReapNow, format!("--reap-now=parent={}", name(parent)))
    };
    candidates.into_iter().map(finding).collect()
}

/// Returns for each launch how often its parent slept while the launch was alive. `None` if the
/// parent did not sleep when the launch ended, or if a sibling ran at the same time.
fn parent_sleeps(context: &RuleContext<'_, '_>) -> Vec<Option<ParentSleep>> {
    let forest = context.forest();
    let mut slept = vec![None; forest.launches.len()];
    for parent in 0..forest.launches.len() {
        let children = forest.children(parent);
        for (position, child) in children.iter().enumerate() {
            if is_alone(forest, children, position, |child| forest.launches[child].instants.reaped.get()) {
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
