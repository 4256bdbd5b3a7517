//! Small programs whose work the launching code can do itself, with a function of its language. For
//! shells, `rules/builtin` has better advice about many calls.

use super::{Cure, IN_LANGUAGE, certain, finding, needs_library};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::functions::functions;
use crate::explain::advice::phrases::{OR_ALL, OWN_WORK_LIMIT, name};
use crate::explain::advice::programs::{FILE_CHANGERS, is_worth_a_launch};
use crate::explain::advice::rules::builtin;
use crate::explain::advice::sites::Site;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{is_shell, needless_shell};
use crate::patterns::words::Words;
use crate::predict::whatif::changes::Change;

/// Minimum number of launches of an unknown program. If there are only a few, each may be
/// necessary.
const MIN_LAUNCHES: usize = 20;
/// Programs whose purpose is to launch others. Their input determines how many launches they make.
const LAUNCHERS: Words = Words("cc find gcc gfind gxargs ninja parallel xargs");

/// Returns the cure of small launches by code that can do the work itself.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let forest = context.forest();
    let command = context.launch(site.launches[0]).command.name;
    let runtime = Runtime::of_parent(forest, site.launches[0]);
    let is_known = runtime != Runtime::Shell && site.launches.iter().all(|index| functions(context, *index).is_some());
    if LAUNCHERS.contains(site.parent) || is_worth_a_launch(command) || is_shell(command) {
        return None;
    }
    let mut all = site.launches.clone();
    all.retain(|index| is_known || is_small(context, *index));
    if all.len() * 2 < site.launches.len() || !is_known && all.len() < MIN_LAUNCHES {
        return None;
    }
    let own = builtin::without_launching(context, &all);
    let is_guess = builtin::can_replace(context, all[0]) || needs_library(command) || own.is_empty();
    let finding = finding(context, site, IN_LANGUAGE, "", all)
        .fix_lines(fix(own, runtime, command))
        .limits(OWN_WORK_LIMIT)
        .predicted_as(context, Change::InProcess);
    Some(certain(if is_guess { finding.guessed() } else { finding }))
}

/// Whether a launch without descendants works for less time than it takes to launch it. About
/// programs in an unnecessary shell, the rule `needless-shell` has better advice.
fn is_small(context: &RuleContext<'_, '_>, index: u32) -> bool {
    let forest = context.forest();
    let parent = forest.parent(index as usize);
    context.launch(index).execs.len() == 1
        && forest.children(index as usize).is_empty()
        && parent.is_none_or(|parent| needless_shell(forest, parent as u32).is_none())
        && context.small_work.is_mostly_tax_by_cpu_time(index as usize)
}

/// Returns the fix. `own` are the lines with which the code does the work itself.
fn fix(own: Vec<String>, runtime: Runtime, command: &[u8]) -> Vec<String> {
    let or = format!("keep one process that answers through a pipe{OR_ALL}");
    if runtime == Runtime::Shell && FILE_CHANGERS.contains(command) {
        return [
            "launch it less often:",
            "  pass several files to one launch",
            "  skip launches that change nothing, such as rm -f of a missing file",
            "  write a file under its final name at once instead of renaming it",
        ]
        .map(str::to_owned)
        .to_vec();
    }
    let lines = match (own.is_empty(), runtime) {
        (true, Runtime::Shell | Runtime::Native) => vec!["launch it less often:".to_owned(), format!("  {or}")],
        (true, _) => vec![format!("do the work in {}, with a library, or {or}", runtime.label())],
        (false, Runtime::Shell) => vec!["do the work in the shell:".to_owned()],
        (false, _) => vec![format!("do the work of {} in {}, which launches nothing:", name(command), runtime.label())],
    };
    lines.into_iter().chain(own).collect()
}
