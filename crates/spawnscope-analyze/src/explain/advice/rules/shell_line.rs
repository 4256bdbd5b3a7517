//! Lines of shell scripts that launch several small programs and forks, such as `x=$(echo "$y" |
//! sed s/a/b/ | cut -d: -f1)`. The shell can do all of it. One line is one cause, and its launches
//! are saved together.

use std::collections::BTreeSet;

use super::builtin;
use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::functions::functions;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::thresholds::longest_groups;
use crate::patterns::shells::Dialect;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 3;
/// A line is reported if its launches take at least this share of the wall.
const MIN_SHARE: f64 = 0.05;
/// At least this share of the programs of a line must be small, in percent.
const MIN_SMALL_PERCENT: usize = 80;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let by_line = context.grouped_by(|index, launch| {
        let number = context.sites.number_of(index as usize)?;
        let is_line = context.sites.call_site(number).line.is_some() && launch.is_launch();
        Dialect::of_parent(forest, index as usize).filter(|_| is_line).map(|_| number)
    });
    let lines = by_line.into_iter().filter(|(_, all)| is_shell_line(context, all));
    longest_groups(context, lines, MAX_FINDINGS).into_iter().filter_map(|(_, all)| finding(context, all)).collect()
}

/// Whether a shell can do all that a line launches, and a single program is not the whole of it.
fn is_shell_line(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let programs: BTreeSet<&[u8]> = programs(context, all);
    let forks = all.iter().filter(|index| context.launch(**index).execs.is_empty()).count();
    let executed = all.iter().filter(|index| !context.launch(**index).execs.is_empty());
    let small = executed.clone().filter(|index| context.small_work.is_mostly_tax_by_cpu_time(**index as usize)).count();
    let is_reversed = reverses_twice(context, all);
    let is_of_line = |child: &usize| all.binary_search(&(*child as u32)).is_ok();
    let can_replace = |index: &u32| {
        let launch = context.launch(*index);
        let is_known = is_reversed && launch.command.name == b"rev" || builtin::functions_or_code(context, *index);
        // A fork may run a function that launches other programs.
        let children = context.forest().children(*index as usize);
        children.iter().all(is_of_line) && (launch.execs.is_empty() || launch.execs.len() == 1 && is_known)
    };
    programs.len() + usize::from(forks > 0) > 1
        && !programs.is_empty()
        && all.len() >= 2 * MIN_REPETITIONS
        && small * 100 >= executed.count() * MIN_SMALL_PERCENT
        && all.iter().all(can_replace)
        && !all.iter().any(|index| builtin::may_read_much(context, *index))
        && context.spent_on(&tops(context, all)) >= context.share_of_wall(MIN_SHARE)
}

/// Whether a line looks for the last field of a text: `rev | cut -d. -f1 | rev`.
fn reverses_twice(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let count = |program: &[u8]| all.iter().filter(|index| context.launch(**index).command.name == program).count();
    count(b"cut") > 0 && count(b"rev") == 2 * count(b"cut")
}

fn programs<'a>(context: &RuleContext<'_, 'a>, all: &[u32]) -> BTreeSet<&'a [u8]> {
    let executed = all.iter().map(|index| context.launch(*index)).filter(|launch| !launch.execs.is_empty());
    executed.map(|launch| launch.command.name).collect()
}

/// Returns the launches whose parents are not among them.
fn tops(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<u32> {
    let has_parent = |index: &u32| {
        let parent = context.forest().parent(*index as usize);
        parent.is_some_and(|parent| all.binary_search(&(parent as u32)).is_ok())
    };
    all.iter().copied().filter(|index| !has_parent(index)).collect()
}

/// Returns how the shell does the work of the programs of a line.
fn general(context: &RuleContext<'_, '_>, all: &[u32]) -> Vec<String> {
    let line = |index: &u32| {
        let functions = || functions(context, *index).map(str::to_owned);
        let own = builtin::code_for(context, *index).or_else(functions)?;
        Some(format!("  {}: {own}", name(context.launch(*index).command.name)))
    };
    let lines: BTreeSet<String> = match reverses_twice(context, all) {
        true => ["  $(echo \"$x\" | rev | cut -d. -f1 | rev)  ->  ${x##*.}".to_owned()].into(),
        false => all.iter().filter_map(line).collect(),
    };
    ["do the work of the line without launches:".to_owned()].into_iter().chain(lines).collect()
}

fn finding(context: &RuleContext<'_, '_>, all: Vec<u32>) -> Option<Finding> {
    let first = *all.iter().find(|index| !context.launch(**index).execs.is_empty())?;
    let parent =
        context.forest().launcher(first as usize).map(|exec| name(crate::model::launch::base_name(exec.path())))?;
    let names: Vec<String> = programs(context, &all).into_iter().map(name).collect();
    let place = context.sites.call_site_of(first as usize).map(|site| name(&site.short_label())).unwrap_or_default();
    let fix = builtin::fix_of(context, &all);
    let mut others = all.clone();
    let own = context.by_program(&all).into_values().filter(|own| !builtin::fix_of(context, own).is_empty());
    own.for_each(|own| others.retain(|index| own.binary_search(index).is_err()));
    let general = general(context, &others);
    let general = general.into_iter().skip(usize::from(!fix.is_empty()));
    let tops = tops(context, &all);
    let spent = time(context.spent_on(&tops));
    let changes = vec![AppliedChange { change: Change::Remove, launches: tops }];
    let executed = all.iter().filter(|index| !context.launch(**index).execs.is_empty()).count();
    let title = format!(
        "{parent} launches {} {}, at {place}: the shell can do all of it",
        names.join(" and "),
        times(executed)
    );
    let evidence = format!("{}, including forks of the shell, take {spent} in all", launches(all.len()));
    let finding = Finding::modelled("shell-line", title, all)
        .evidence(evidence)
        .with_example(context)
        .fix_lines(fix)
        .fix_lines(general)
        .recipe("shell-line", &[], &[])
        .predicted_with(context, changes);
    Some(finding)
}
