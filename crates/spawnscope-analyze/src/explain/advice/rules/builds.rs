//! Builds that start their tool again for each part. Package scripts call `npm run`, `npx` or
//! another runner, which only starts the script's command. Recipes of make start a make for each
//! directory, which reads its makefiles and checks its files even if there is nothing to do. They
//! run one after the other unless the directories are targets of their own.

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{abridged, name, option, time};
use crate::patterns::package_scripts::{ScriptCall, is_in_script};
use crate::patterns::recursive_make::{Generator, is_sub_make};
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

const MAX_FINDINGS: usize = 2;
/// A single call counts if its runner takes at least this share of the wall.
const LARGE_SHARE: f64 = 0.3;
/// Maximum length of a command in the fix, in characters.
const MAX_COMMAND: usize = 60;

pub(super) fn sub_makes(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    // A make whose output is read, as for `$(shell make ...)`, is a query, not a part of the build.
    let by_kind = context.grouped_by(|index, launch| {
        let is_part = is_sub_make(forest, index as usize) && !context.is_captured(index);
        is_part.then_some((launch.birth_command.name, launch.command.name))
    });
    let groups = context.longest_frequent(by_kind, MAX_FINDINGS);
    let finding = |((parent, program), all): ((&[u8], &[u8]), Vec<u32>)| {
        let idle = all.iter().copied().filter(|index| forest.children(*index as usize).is_empty());
        let idle: Vec<u32> = idle.collect();
        let generator = all.iter().find_map(|index| Generator::of(forest, *index as usize));
        let generator = generator.map_or("own".to_owned(), |generator| format!("{generator:?}"));
        let [one, several] = ["of them launches nothing, and takes", "of them launch nothing, and take"];
        let values = [
            ("idlers", &units::counted(idle.len() as u64, one, several)[..]),
            ("idled", &time(context.spent_on(&idle))),
        ];
        let cases = [&generator[..], if idle.is_empty() { "" } else { "idle" }];
        Finding::of(context, "make-recursive", all, &cases, &values)
            .predicted_by(Change::InProcess, option("--in-process", program, parent))
    };
    groups.map(finding).collect()
}

pub(super) fn package_scripts(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let by_runner = context.grouped_by(|index, _| {
        let call = ScriptCall::of(context.forest(), index)?;
        Some((call.runner, is_in_script(context.forest(), index)))
    });
    // A single `npm test` is what the user typed. Inside another script, each call can be left out,
    // and so can one whose runner takes longest.
    let calls = by_runner.into_iter().filter(|((_, is_nested), all)| {
        *is_nested
            || all.len() >= MIN_REPETITIONS
            || spent_in_runners(context, all) >= context.share_of_wall(LARGE_SHARE)
    });
    let calls = context.longest(calls, MAX_FINDINGS);
    calls.filter_map(|((_, is_nested), all)| package_script(context, is_nested, all)).collect()
}

/// Returns the time of the runners themselves, without the commands that they run.
fn spent_in_runners(context: &RuleContext<'_, '_>, all: &[u32]) -> Nanos {
    let children = all.iter().filter_map(|index| ScriptCall::of(context.forest(), *index));
    let children: Vec<u32> = children.map(|call| call.child).collect();
    context.spent_on(all).since(context.spent_on(&children))
}

fn package_script(context: &RuleContext<'_, '_>, is_nested: bool, all: Vec<u32>) -> Option<Finding> {
    let call = ScriptCall::of(context.forest(), all[0])?;
    let script = call.script().map(name);
    // A package's scripts have its programs in their PATH.
    let directory = if is_nested || script.is_some() { "" } else { "node_modules/.bin/" };
    let typed = format!("{} {}", call.runner, name(&call.arguments.join(&b' ')));
    let values = [
        ("own", &time(spent_in_runners(context, &all))[..]),
        ("typed", &abridged(&typed, MAX_COMMAND)),
        ("runner", call.runner),
        ("directory", directory),
        ("script", script.as_deref().unwrap_or_default()),
        ("command", &call.command.map(|command| abridged(&name(command), MAX_COMMAND)).unwrap_or_default()),
    ];
    let case = match (is_nested, all.len()) {
        (true, 1) => "again",
        (true, _) => "often",
        (false, _) => "single",
    };
    let finding = Finding::of(context, "package-script", all, &[case], &values).predicted_as(context, Change::Direct);
    Some(finding)
}
