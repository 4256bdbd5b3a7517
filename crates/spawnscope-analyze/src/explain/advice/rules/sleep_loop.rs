//! Scripts that poll: `while kill -0 "$pid"; do sleep 1; done`. A script can wait for the end of a
//! process or for a change to a file instead.

use std::collections::BTreeMap;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, time};
use crate::explain::advice::thresholds::longest_groups;
use crate::model::launch::Outcome;
use crate::model::phases::Phase;
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::changes::{Change, overslept};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Id of this rule.
pub(in crate::explain::advice) const RULE: &str = "sleep-loop";
const MAX_FINDINGS: usize = 2;
/// Minimum number of equal sleeps by one process. The number is small because a few long sleeps can
/// take most of the wall.
const MIN_SLEEPS: usize = 3;
/// Fewer sleeps count if they take at least this share of the wall.
const LARGE_SHARE: f64 = 0.1;
/// The same for a single sleep.
const MAJORITY: f64 = 0.3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut loops: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let mut of_parent: BTreeMap<(&[u8], &[u8]), Vec<u32>> = BTreeMap::new();
        for &index in forest.children(parent) {
            let launch = &forest.launches[index];
            let [exec] = &launch.execs[..] else { continue };
            let pause = exec.arguments().nth(1).filter(|_| launch.command.name == b"sleep");
            if let Some(pause) = pause {
                of_parent.entry((launch.birth_command.name, pause)).or_default().push(index as u32);
            }
        }
        let frequent_groups =
            of_parent.into_iter().filter(|(_, all)| all.len() >= MIN_SLEEPS || holds_the_wall(context, all));
        frequent_groups.for_each(|(key, mut all)| loops.entry(key).or_default().append(&mut all));
    }
    // A single sleep beside a loop is more likely what the loop waits for.
    if loops.values().any(|all| all.len() > 1) {
        loops.retain(|_, all| all.len() > 1);
    }
    longest_groups(context, loops, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, pause), mut all)| {
            all.sort_unstable();
            finding(context, parent, pause, all)
        })
        .collect()
}

/// Whether a few sleeps take so much of the wall that each of them counts.
fn holds_the_wall(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let share = if all.len() > 1 { LARGE_SHARE } else { MAJORITY };
    context.total_phase(all, Phase::Run) >= context.share_of_wall(share)
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], pause: &[u8], all: Vec<u32>) -> Finding {
    let late: Vec<u64> =
        all.iter().filter_map(|index| overslept(context.forest(), *index)).map(|late| late.0).collect();
    let slept = context.total_phase(&all, Phase::Run);
    let late_evidence = (!late.is_empty()).then(|| {
        let total = Nanos(late.iter().sum());
        format!(
            "{} after the end of a child, for {} in all",
            units::counted(late.len() as u64, "sleep continued", "sleeps continued"),
            time(total)
        )
    });
    // Without a known event, nothing shows when the sleep could have ended.
    let is_unknown = late.is_empty() && holds_the_wall(context, &all);
    let change = if is_unknown { Change::Remove } else { Change::WakeInTime };
    let does = if is_unknown { "pauses" } else { "polls" };
    let title = format!("{} {does}: {} x sleep {}", name(parent), units::count(all.len() as u64), name(pause));
    let runtime = Runtime::of_parent(context.forest(), first_launch_by(context, parent));
    let is_interval = is_unknown && is_between_work(context, &all);
    let finding = Finding::modelled(RULE, title, all)
        .evidence(format!("it sleeps for {} in all", time(slept)))
        .evidence_lines(late_evidence)
        .with_example(context)
        .recipe(RULE, &[&format!("{runtime:?}"), if is_unknown { "unknown" } else { "" }], &[])
        .predicted_by(change, "");
    Finding { is_at_most: is_unknown, is_guess: is_interval, ..finding }
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

/// Returns the first launch by a program of this name.
fn first_launch_by(context: &RuleContext<'_, '_>, parent: &[u8]) -> u32 {
    let mut launched = context.launched();
    launched.find(|(_, launch)| launch.birth_command.name == parent).map_or(0, |(index, _)| index)
}
