//! Commands that wait for their shells: what to change in the program that starts them, or else in
//! the files that their shells read.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, time};
use crate::explain::advice::tables::recipe;
use crate::explain::tool_calls::{FISH, Reason, ToolCalls};
use crate::patterns::shells::is_shell;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Maximum number of kinds of commands that advice is given for.
const MAX_FINDINGS: usize = 3;
/// Maximum number of lines of files that the evidence names.
const MAX_CAUSES: usize = 4;
/// A cause other than start-up files gets a fix if it takes at least this fraction (1/10) of the
/// time.
const MIN_SHARE: u64 = 10;

/// Returns the findings. Each saves what the shells start because of lines of files.
pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let kinds = context.tool_calls.iter().filter(|kind| !kind.launches.is_empty());
    kinds.take(MAX_FINDINGS).map(|kind| finding(context, kind)).collect()
}

fn finding(context: &RuleContext<'_, '_>, kind: &ToolCalls) -> Finding {
    let [median, high, _] = kind.delay.map(time);
    let causes = kind.causes.iter().take(MAX_CAUSES);
    let causes = causes.map(|cause| format!("{} a command: {}", time(cause.time), name(&cause.label)));
    let values = [
        ("caller", &name(&kind.caller)[..]),
        ("count", &units::count(kind.count as u64)),
        ("shape", &kind.shape),
        ("median", &median),
        ("high", &high),
    ];
    Finding::of(context, "tool-calls", kind.launches.clone(), &[], &values)
        .evidence_lines(causes)
        .fix_lines(fixes(kind))
        .predicted_by(Change::Remove, "")
}

/// Returns what to change, for the causes that take most.
#[must_use]
pub fn fixes(kind: &ToolCalls) -> Vec<String> {
    let total: u64 = kind.causes.iter().map(|cause| cause.time.0).sum();
    let shell = kind.shape.split(' ').find(|word| is_shell(word.as_bytes()) || word.as_bytes() == FISH);
    // What keeps a shell from reading files: one of these is enough.
    let case = match shell {
        _ if !kind.is_login && kind.causes.iter().all(|cause| cause.reason != Reason::StartUp) => "",
        Some("fish") => "in-fish",
        _ if kind.is_login => "in-login",
        _ if kind.sources_files => "in-sourced",
        Some("bash") => "in-bash",
        _ => "in-other",
    };
    let mut fixes = recipe("start-up-files", &[case, &name(&kind.caller)], &[]).fix;
    for cause in kind.causes.iter().filter(|cause| cause.time.0 * MIN_SHARE >= total) {
        let reason = format!("{:?}", cause.reason);
        fixes.extend(recipe("slow-command", &[&reason], &[("name", &name(&cause.label))]).fix);
    }
    fixes
}
