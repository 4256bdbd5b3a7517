//! The advice about commands that wait for their shells: what to change in the program that starts them, or else in the files
//! that their shells read.

use super::{ToolCalls, tool_calls};
use crate::explain::advice::{Finding, RuleContext};
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Maximum number of kinds of commands that advice is given for.
const MAX_FINDINGS: usize = 3;
/// Maximum number of lines of files that the evidence names.
const MAX_CAUSES: usize = 4;
/// How agents document that their shells need not be login shells.
const OPTIONS: [(&[u8], &str); 2] = [
    (b"claude", "set CLAUDE_BASH_NO_LOGIN=1 in its environment (`env` in ~/.claude/settings.json)"),
    (b"codex", "set `allow_login_shell = false` in ~/.codex/config.toml"),
];

/// Returns the findings. Each saves what the shells start because of lines of files.
pub(crate) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let kinds = tool_calls(context.whatif.forest).into_iter().filter(|kind| !kind.launches.is_empty());
    kinds.take(MAX_FINDINGS).map(finding).collect()
}

fn finding(kind: ToolCalls) -> Finding {
    let [median, high, _] = kind.delay.map(units::time);
    let causes = kind.causes.iter().take(MAX_CAUSES);
    let causes =
        causes.map(|cause| format!("{} a command: {}", units::time(cause.time), String::from_utf8_lossy(&cause.label)));
    Finding {
        rule: "tool-calls",
        title: format!(
            "{} starts {} commands with `{}`, and each waits {median} for what its shell does first",
            String::from_utf8_lossy(&kind.caller),
            units::count(kind.count as u64),
            kind.shape
        ),
        evidence: [format!("95 % wait less than {high}")].into_iter().chain(causes).collect(),
        fix: fixes(&kind),
        limits: "what these files set, such as PATH and functions, is then missing in the commands".to_owned(),
        changes: vec![AppliedChange { change: Change::Remove, launches: kind.launches.clone() }],
        launches: kind.launches,
        is_fixed_elsewhere: true,
        ..Finding::default()
    }
}

/// Returns what to change: one of these is enough.
#[must_use]
pub fn fixes(kind: &ToolCalls) -> Vec<String> {
    let mut fixes = Vec::new();
    if kind.is_login {
        let documented = OPTIONS.iter().find(|(agent, _)| *agent == kind.caller);
        fixes.push(documented.map_or("start the shell without -l", |(_, option)| option).to_owned());
        fixes.push("or let the files of login shells return at once when `[ -t 0 ]` is false".to_owned());
    } else if kind.sources_files {
        fixes.push("leave these lines out of the file that each command sources".to_owned());
    } else if kind.shape.starts_with("bash") && !kind.launches.is_empty() {
        fixes.push("do not set BASH_ENV: each `bash -c` reads the file that it names".to_owned());
        fixes.push("or let these lines run once for all commands, in the program that starts them".to_owned());
    } else if !kind.causes.is_empty() {
        fixes.push("let these lines run only in interactive shells, or once for all commands".to_owned());
    }
    fixes
}
