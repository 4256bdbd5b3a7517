//! Programs that are launched once per item, although one launch can handle many items: `git show`
//! and `git log` per file or commit, `docker inspect` per container, `stat` per file.

mod table;

use std::collections::{BTreeMap, HashSet};

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::selection::batch_option;
use crate::explain::advice::thresholds::{MIN_REPETITIONS, longest_groups};
use crate::model::phases::Phase;
use crate::patterns::subcommands;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Id of this rule.
pub(in crate::explain::advice) const RULE: &str = "per-item";
const MAX_FINDINGS: usize = 3;
/// Maximum number of items per launch. More would make the command line too long.
const MAX_BATCH: u32 = 1000;
/// Minimum share of distinct command lines, in percent. Repeated command lines belong to the rule
/// `repeats`.
const MIN_DISTINCT_PERCENT: usize = 50;

/// The parent's program, the launched program, its subcommand, and the fix.
type Key<'a> = (&'a [u8], &'a [u8], &'a [u8], &'static str);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut by_kind: BTreeMap<Key<'_>, Vec<u32>> = BTreeMap::new();
    for parent in 0..forest.launches.len() {
        let mut of_parent: BTreeMap<Key<'_>, Vec<u32>> = BTreeMap::new();
        for &index in forest.children(parent) {
            let launch = &forest.launches[index];
            let [exec] = &launch.execs[..] else { continue };
            let program = launch.command.name;
            if let Some((fix, subcommand)) = table::batch_form(program, exec).filter(|_| !exec.argv_cut) {
                let key = (launch.birth_command.name, program, subcommand, fix);
                of_parent.entry(key).or_default().push(index as u32);
            }
        }
        let items = of_parent.into_iter().filter(|(_, all)| are_items(context, all));
        items.for_each(|(key, mut all)| by_kind.entry(key).or_default().append(&mut all));
    }
    longest_groups(context, by_kind, MAX_FINDINGS)
        .into_iter()
        .map(|(key, mut all)| {
            all.sort_unstable();
            finding(context, key, all)
        })
        .collect()
}

/// Whether launches by one process ask about different items.
fn are_items(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let lines = all.iter().filter_map(|index| Some(context.launch(*index).execs.last()?.argv()));
    let distinct: HashSet<&[u8]> = lines.collect();
    all.len() >= MIN_REPETITIONS
        && distinct.len() >= MIN_REPETITIONS
        && distinct.len() * 100 >= all.len() * MIN_DISTINCT_PERCENT
}

fn finding(context: &RuleContext<'_, '_>, (parent, program, subcommand, fix): Key<'_>, all: Vec<u32>) -> Finding {
    let command = if subcommand.is_empty() { name(program) } else { name(&subcommands::label(program, subcommand)) };
    let title = format!("{} launches {command} {}, once per item", name(parent), times(all.len()));
    let run = context.total_phase(&all, Phase::Run);
    let each = Nanos(run.0 / all.len().max(1) as u64);
    let evidence = format!(
        "{} take {} in all and run for {} on average, including a start-up that one launch would need only once",
        launches(all.len()),
        time(context.spent_on(&all)),
        time(each)
    );
    let option = batch_option(context, (program, parent), subcommand, &all, MAX_BATCH);
    Finding::modelled(RULE, title, all)
        .evidence(evidence)
        .with_example(context)
        .fix("ask once for all items:")
        .fix(format!("  {fix}"))
        .limits(
            "all answers then arrive in one output, which must be split; items that depend on earlier answers need their own \
             launch; the prediction assumes that the shortest run consists of start-up only",
        )
        .predicted_by(Change::Batch(MAX_BATCH), option)
}
