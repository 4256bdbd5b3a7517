//! Package scripts that call `npm run`, `npx` or another runner: each call starts a runner, which
//! only starts the script's command.

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{abridged, launches, name, time, times};
use crate::explain::advice::thresholds::longest_groups;
use crate::patterns::package_scripts::{ScriptCall, is_in_script};
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 2;
/// A single call counts if its runner takes at least this share of the wall.
const LARGE_SHARE: f64 = 0.3;
/// Maximum length of a command in the fix, in characters.
const MAX_COMMAND: usize = 60;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_runner = context.grouped_by(|index, _| {
        let call = ScriptCall::of(context.forest(), index)?;
        Some((call.runner, is_in_script(context.forest(), index)))
    });
    // A single `npm test` is what the user typed. Inside another script, each call can be left out,
    // and so can one whose runner takes longest.
    let calls = by_runner
        .into_iter()
        .filter(|((_, is_nested), all)| *is_nested || all.len() >= MIN_REPETITIONS || holds_the_wall(context, all));
    let calls = longest_groups(context, calls, MAX_FINDINGS).into_iter();
    calls.filter_map(|((_, is_nested), all)| finding(context, is_nested, all)).collect()
}

/// Whether the runners themselves take much of the wall.
fn holds_the_wall(context: &RuleContext<'_, '_>, all: &[u32]) -> bool {
    let children = all.iter().filter_map(|index| ScriptCall::of(context.forest(), *index));
    let children: Vec<u32> = children.map(|call| call.child).collect();
    context.spent_on(all).since(context.spent_on(&children)) >= context.share_of_wall(LARGE_SHARE)
}

fn finding(context: &RuleContext<'_, '_>, is_nested: bool, all: Vec<u32>) -> Option<Finding> {
    let call = ScriptCall::of(context.forest(), all[0])?;
    let children = all.iter().filter_map(|index| ScriptCall::of(context.forest(), *index));
    let children: Vec<u32> = children.map(|call| call.child).collect();
    let own = context.spent_on(&all).since(context.spent_on(&children));
    let runner = call.runner;
    let title = match (is_nested, all.len()) {
        (true, 1) => format!("a package script starts {runner} again for another script"),
        (true, count) => format!("package scripts start {runner} again {}", times(count)),
        (false, count) => format!("{runner} starts {}, each time for one command", times(count)),
    };
    let evidence = format!(
        "{} of {runner}, {} in all, {} of it in {runner} itself and not in the commands that it runs",
        launches(all.len()),
        time(context.spent_on(&all)),
        time(own),
    );
    let command = call.command.map(|command| abridged(&name(command), MAX_COMMAND)).unwrap_or_default();
    let script = call.script().map(name);
    // A package's scripts have its programs in their PATH.
    let directory = if is_nested || script.is_some() { "" } else { "node_modules/.bin/" };
    let values = [
        ("typed", &abridged(&format!("{runner} {}", name(&call.arguments.join(&b' '))), MAX_COMMAND)[..]),
        ("runner", runner),
        ("directory", directory),
        ("script", script.as_deref().unwrap_or_default()),
        ("command", &command),
    ];
    let finding = Finding::measured("package-script", title, all)
        .evidence(evidence)
        .with_example(context)
        .recipe("package-script", &[], &values)
        .predicted_as(context, Change::Direct);
    Some(finding)
}
