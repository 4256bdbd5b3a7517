//! Forks of a shell that never exec: `$( )` around functions and builtins, `( )`, and builtins in a
//! pipeline. For each of them the shell copies itself, and the copy soon ends.

use std::collections::BTreeMap;

use super::builtin::forks_for_programs;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{forks, name, time, times};
use crate::explain::advice::small_work::{judge_by_line, lines};
use crate::explain::advice::thresholds::{longest_frequent_groups, work_time};
use crate::model::launch::{Launch, NOT_FOUND};
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::pipeline::is_bare_fork;
use crate::patterns::shells::Dialect;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

const MAX_FINDINGS: usize = 3;
/// A fork that runs longer than this multiple of its launch cost does real work, which the fix
/// would not remove.
const MAX_RUN_FACTOR: u64 = 3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    // The `builtin` rule reports these forks, together with the programs that they launch.
    let reported = forks_for_programs(context);
    // A shell forks for a program that it does not find, too.
    let is_candidate = |index: u32, launch: &Launch<'_>| {
        launch.outcome != NOT_FOUND && !reported.contains(&index) && is_bare_fork(forest, index as usize)
    };
    let shares = (0..)
        .zip(&forest.launches)
        .map(|(index, launch)| is_candidate(index, launch).then(|| share_of_work(context, index as usize)).flatten());
    let is_small = judge_by_line(&lines(forest), &shares.collect::<Vec<_>>());
    let mut by_parent: BTreeMap<(&[u8], Dialect), Vec<u32>> = BTreeMap::new();
    for (index, launch) in (0..).zip(&forest.launches).filter(|(index, _)| is_small[*index as usize]) {
        // Only forks of shells. Worker processes of other programs do not exec either, but do real
        // work.
        let dialect = Dialect::of_parent(forest, index as usize);
        if let Some(dialect) = dialect.filter(|_| !is_in_version_manager(forest, index)) {
            let group = (launch.birth_command.name, dialect);
            by_parent.entry(group).or_default().push(index);
        }
    }
    longest_frequent_groups(context, by_parent, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, dialect), launches)| finding(context, parent, dialect, launches))
        .collect()
}

/// Returns the work of a fork as a multiple of the most that the fix would remove. Page copies at
/// the first write after the fork count as `run`, so even a fork for an `echo` runs about as long
/// as its launch takes.
fn share_of_work(context: &RuleContext<'_, '_>, index: usize) -> Option<f64> {
    let (run, launching) = (work_time(context, index)?, context.forest().launches[index].launch_cost()?);
    Some(run.0 as f64 / (MAX_RUN_FACTOR * launching.0.max(1)) as f64)
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], dialect: Dialect, launches: Vec<u32>) -> Finding {
    let count = launches.len();
    let captured = launches.iter().filter(|index| context.is_captured(**index)).count();
    let title = format!("{} forks {} without running a program", name(parent), times(count));
    let spent = time(context.spent_on(&launches));
    let dialect = format!("{dialect:?}");
    // Only forms that occur are of use.
    let cases = [(true, &dialect[..]), (captured > 0, "captured"), (captured < count, "others")];
    let cases: Vec<&str> = cases.into_iter().filter(|(holds, _)| *holds).map(|(_, case)| case).collect();
    Finding::modelled("bare-forks", title, launches)
        .evidence(format!("{} that never exec and launch nothing take {spent} in all and do little work", forks(count)))
        .evidence(match captured {
            0 => "none of them is a `$( )`; they are parts of pipelines, or run in `( )`".to_owned(),
            _ if captured == count => "all of them are `$( )`".to_owned(),
            _ => format!(
                "{} of them are `$( )`; the others are parts of pipelines, or run in `( )`",
                units::count(captured as u64)
            ),
        })
        .recipe("bare-forks", &cases, &[])
        .predicted_as(context, Change::Remove)
}
