//! Groups launches into sites: by the parent's program and the program that is really executed, and by the line or the subcommand if much
//! may depend on one of these alone.

use std::collections::BTreeMap;

use super::{MIN_DEPENDENT_SHARE, Site};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::rules::off_path::critical_with_descendants;
use crate::explain::advice::thresholds::MIN_REPETITIONS;
use crate::model::launch::{Launch, NOT_FOUND, base_name};
use crate::model::tree::Forest;
use crate::patterns::calls::Call;
use crate::patterns::chains::is_in_version_manager;
use crate::patterns::queries::{Answer, answer_of, question_of};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::command_of;
use crate::patterns::subcommands::subcommand_of;
use crate::sites::callers::CallSite;
use spawnscope_data::event::Nanos;

/// A site is examined if at least this share of the minimum is on the critical path, since more may depend on it.
const MIN_CRITICAL: f64 = 0.5 * MIN_DEPENDENT_SHARE;

/// The line that requests a launch, and the script that it executes; without a line, the script or the subcommand.
type Place<'g, 'a> = (Option<&'g CallSite>, Option<&'a [u8]>);

/// Returns the sites that may be worth a cure: those with much time on the critical path, and those with many launches.
pub(super) fn sites<'a>(context: &RuleContext<'_, 'a>) -> Vec<Site<'a>> {
    let critical = critical_with_descendants(context);
    let critical_of = |launches: &[u32]| {
        let sum: u64 = launches.iter().map(|launch| critical[*launch as usize]).sum();
        Nanos(sum.min(context.wall().0))
    };
    let by_programs = context.grouped_by(|index, launch| {
        let program = program_of(context.forest(), index, launch)?;
        (!is_in_version_manager(context.forest(), index)).then_some((launch.birth_command.name, program))
    });
    let mut sites = Vec::new();
    for ((parent, command), launches) in by_programs {
        // One question that several lines ask is one cause.
        let parts =
            if are_questions(context, &launches) { vec![launches] } else { parts(context, launches, &critical_of) };
        for launches in parts {
            let program = common_script(context, &launches).unwrap_or(command);
            sites.push(Site { parent, program, critical: critical_of(&launches), launches });
        }
    }
    let least = context.share_of_wall(MIN_CRITICAL);
    sites.retain(|site| {
        let is_frequent = site.launches.len() >= MIN_REPETITIONS && site.critical >= context.min_saving();
        site.critical >= least || is_frequent
    });
    sites
}

/// Whether most launches repeat questions.
fn are_questions(context: &RuleContext<'_, '_>, launches: &[u32]) -> bool {
    let execs = launches.iter().filter_map(|index| context.launch(*index).execs.last());
    let questions = execs.filter(|exec| answer_of(exec) == Some(Answer::Same)).map(question_of);
    let mut questions: Vec<_> = questions.collect();
    let all = questions.len();
    questions.sort_unstable();
    questions.dedup();
    all * 2 > launches.len() && questions.len() * 2 < all
}

/// Returns the program that a launch executed; for a fork whose exec failed, the missing program. `None` for other forks.
fn program_of<'a>(forest: &Forest<'a>, index: u32, launch: &Launch<'a>) -> Option<&'a [u8]> {
    if !launch.execs.is_empty() {
        return Some(launch.command.name);
    }
    let is_missing = launch.outcome == NOT_FOUND && forest.children(index as usize).is_empty();
    is_missing.then(|| forest.failed_execs(index as usize).last().map_or(&b""[..], |failed| base_name(failed.path)))
}

/// Returns the script that all of these launches execute.
fn common_script<'a>(context: &RuleContext<'_, 'a>, launches: &[u32]) -> Option<&'a [u8]> {
    let mut scripts = launches.iter().map(|index| Some(Call::of(context.launch(*index).execs.last()?)?.name));
    let first = scripts.next()??;
    scripts.all(|script| script == Some(first)).then_some(first)
}

/// Splits launches by line or subcommand where one of these may be worth an answer alone. The others stay together.
fn parts(context: &RuleContext<'_, '_>, launches: Vec<u32>, critical_of: &impl Fn(&[u32]) -> Nanos) -> Vec<Vec<u32>> {
    let mut by_place: BTreeMap<Place<'_, '_>, Vec<u32>> = BTreeMap::new();
    for index in launches {
        let line = context.sites.call_site_of(index as usize).filter(|_| !is_line_of_recipe(context, index));
        let exec = context.launch(index).execs.last();
        let subcommand = exec.filter(|_| line.is_none()).and_then(subcommand_of);
        let script = exec.and_then(Call::of).map(|call| call.name);
        by_place.entry((line, subcommand.or(script))).or_default().push(index);
    }
    let least = context.share_of_wall(MIN_DEPENDENT_SHARE);
    let (mut parts, others): (Vec<_>, Vec<_>) = by_place.into_values().partition(|part| critical_of(part) >= least);
    let mut others = others.concat();
    others.sort_unstable();
    parts.push(others);
    parts.retain(|part| !part.is_empty());
    parts
}

/// Whether make started a shell for a line of a recipe. All lines of a recipe can share a shell, so they are one place.
fn is_line_of_recipe(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let is_command_line = context.launch(index).execs.first().and_then(command_of).is_some();
    is_command_line && Runtime::of_parent(context.forest(), index) == Runtime::Make && !context.is_captured(index)
}
