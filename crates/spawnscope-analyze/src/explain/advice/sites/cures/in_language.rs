//! Small programs whose work the launching code can do itself, with a function of its language. For
//! shells, `rules/builtin` has better advice about many calls.

use super::{Cure, IN_LANGUAGE, certain, finding};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::functions::functions;
use crate::explain::advice::phrases::{OR_ALL, name};
use crate::explain::advice::programs::is_worth_a_launch;
use crate::explain::advice::rules::builtin;
use crate::explain::advice::sites::Site;
use crate::patterns::programs::{has_property, version_has_property};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::{is_shell, needless_shell};
use crate::predict::whatif::changes::Change;

/// Minimum number of launches of an unknown program. If there are only a few, each may be
/// necessary.
const MIN_LAUNCHES: usize = 20;

/// Returns the cure of small launches by code that can do the work itself.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let forest = context.forest();
    let command = context.launch(site.launches[0]).command.name;
    let runtime = Runtime::of_parent(forest, site.launches[0]);
    let is_known = runtime != Runtime::Shell && site.launches.iter().all(|index| functions(context, *index).is_some());
    // The input of these determines how many launches they make. Makefiles have functions, and a
    // shell script may be called `script`, too.
    let has_code = matches!(runtime, Runtime::Make | Runtime::Shell);
    let is_launcher = has_property(site.parent, "launcher") && !has_code;
    let is_by_purpose = is_launcher || version_has_property(site.parent, "compiler");
    if is_by_purpose || is_worth_a_launch(command) || is_shell(command) {
        return None;
    }
    let mut all = site.launches.clone();
    all.retain(|index| is_known || is_small(context, *index));
    if all.len() * 2 < site.launches.len() || !is_known && all.len() < MIN_LAUNCHES {
        return None;
    }
    let own = builtin::without_launching(context, &all);
    let is_guess = builtin::can_replace(context, all[0]) || has_property(command, "library") || own.is_empty();
    let case = match own.is_empty() {
        _ if runtime == Runtime::Shell && has_property(command, "changes") => "files",
        true => "unknown",
        false => "known",
    };
    let values = [("language", runtime.label()), ("program", &name(command)), ("or_all", OR_ALL)];
    let finding = finding(context, site, IN_LANGUAGE, "", all)
        .recipe("in-language", &[case, &format!("{runtime:?}")], &values)
        .fix_lines(own.into_iter().filter(|_| case == "known"))
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
        && !builtin::may_read_much(context, index)
}
