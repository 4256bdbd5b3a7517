//! Direct calls of version managers: `eval "$(pyenv init -)"` in a shell's start-up file starts a
//! dozen scripts, which print the same text each time.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time, times};
use crate::explain::advice::selection::options;
use crate::explain::advice::thresholds::longest_groups;
use crate::patterns::chains::{direct_manager_call, is_in_version_manager};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;

const MAX_FINDINGS: usize = 3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let calls = context.grouped_by(|index, launch| {
        let call = direct_manager_call(launch).filter(|_| !is_in_version_manager(context.forest(), index))?;
        Some((launch.birth_command.name, call))
    });
    longest_groups(context, calls, MAX_FINDINGS)
        .into_iter()
        .filter_map(|((caller, call), all)| finding(context, caller, &call, all))
        .collect()
}

/// Returns the finding about a command of a version manager. `None` for commands that change
/// something, such as `pyenv install`.
fn finding(context: &RuleContext<'_, '_>, caller: &[u8], call: &[&[u8]], all: Vec<u32>) -> Option<Finding> {
    let (manager, command) = (name(call.first()?), name(call.get(1)?));
    let call = name(&call.join(&b' '));
    let (fix, limits) = replacement(&manager, &command, &call)?;
    Some(same_result(context, "version-manager", caller, &call, all).fix_lines(fix).limits(limits))
}

/// Returns a finding about calls that give the same result each time, without its fix.
pub(super) fn same_result(
    context: &RuleContext<'_, '_>,
    rule: &'static str,
    caller: &[u8],
    call: &str,
    all: Vec<u32>,
) -> Finding {
    let changes = vec![AppliedChange { change: Change::Remove, launches: all.clone() }];
    let spent = time(context.spent_on(&all));
    let (times, evidence) = match all.len() {
        1 => ("once".to_owned(), format!("it takes {spent}, and its result is the same each time")),
        count => (times(count), format!("{} take {spent} in all, with the same result each time", launches(count))),
    };
    let options = options(context, &changes);
    Finding::measured(rule, format!("{} calls `{call}` {times}", name(caller)), all)
        .fixed_elsewhere()
        .evidence(evidence)
        .predicted_by_all(changes, options)
}

/// Returns the fix for a call that prints code for the shell.
pub(super) fn save_output(call: &str, file: &str) -> Vec<String> {
    vec![
        "save its output in a file, and source that file:".to_owned(),
        format!("  {call} >~/{file}"),
        format!("  eval \"$({call})\"  ->  . ~/{file}"),
    ]
}

/// Returns the replacement for a command of a version manager, and its limits.
fn replacement(manager: &str, command: &str, call: &str) -> Option<(Vec<String>, String)> {
    match command {
        "init" | "virtualenv-init" | "activate" => Some((
            save_output(call, &format!(".{manager}-{command}.sh")),
            format!("the file must be written again after each update of {manager}"),
        )),
        "rehash" => Some((
            vec![
                format!("omit it: {manager} updates its shims itself when it installs a version"),
                format!("  {manager} init -  ->  {manager} init - --no-rehash"),
            ],
            format!("programs installed by pip, gem or npm have no shim until the next `{manager} rehash`"),
        )),
        "which" | "whence" | "where" | "root" | "prefix" | "version" | "version-name" | "current" => Some((
            vec!["call it once, and keep the result in a variable".to_owned()],
            "the result differs in a directory that requests another version (.python-version, .tool-versions)"
                .to_owned(),
        )),
        _ => None,
    }
}
