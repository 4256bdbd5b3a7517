//! The advice about commands that wait for their shells: what to change in the program that starts
//! them, or else in the files that their shells read.

use super::{Cause, FISH, Reason, ToolCalls};
use crate::explain::advice::{Finding, RuleContext};
use crate::patterns::shells::is_shell;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Maximum number of kinds of commands that advice is given for.
const MAX_FINDINGS: usize = 3;
/// Maximum number of lines of files that the evidence names.
const MAX_CAUSES: usize = 4;
/// A cause other than start-up files gets a fix if it takes at least this fraction (1/10) of the
/// time.
const MIN_SHARE: u64 = 10;
/// The documented options by which agents start shells that are not login shells.
const OPTIONS: [(&[u8], &str); 2] = [
    (b"claude", "set CLAUDE_BASH_NO_LOGIN=1 in its environment (`env` in ~/.claude/settings.json)"),
    (b"codex", "set `allow_login_shell = false` in ~/.codex/config.toml"),
];

/// Returns the findings. Each saves what the shells start because of lines of files.
pub(crate) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let kinds = context.tool_calls.iter().filter(|kind| !kind.launches.is_empty());
    kinds.take(MAX_FINDINGS).map(finding).collect()
}

fn finding(kind: &ToolCalls) -> Finding {
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
        fix: fixes(kind),
        limits: "what these files set, such as PATH and functions, is then missing in the commands".to_owned(),
        changes: vec![AppliedChange { change: Change::Remove, launches: kind.launches.clone() }],
        launches: kind.launches.clone(),
        is_fixed_elsewhere: true,
        ..Finding::default()
    }
}

/// Returns what to change, for the causes that take most.
#[must_use]
pub fn fixes(kind: &ToolCalls) -> Vec<String> {
    let of = |reason: Reason| kind.causes.iter().filter(move |cause| cause.reason == reason);
    let total: u64 = kind.causes.iter().map(|cause| cause.time.0).sum();
    let is_notable = |cause: &&Cause| cause.time.0 * MIN_SHARE >= total;
    let mut fixes: Vec<String> = Vec::new();
    if kind.is_login || of(Reason::StartUp).next().is_some() {
        fixes.extend(start_up_fixes(kind).map(str::to_owned));
    }
    for cause in kind.causes.iter().filter(is_notable) {
        let name = String::from_utf8_lossy(&cause.label);
        match cause.reason {
            Reason::StartUp => {}
            Reason::Wrapper => {
                fixes.push(format!("keep one {name} for all commands, or start the shell without it"));
            }
            Reason::Shim => {
                fixes.push(format!("put the directory of the real program before that of {name} into PATH"));
            }
            Reason::Hook => {
                fixes.push(format!("let `{name}` run only before the commands that need it"));
            }
        }
    }
    fixes
}

/// Returns what keeps a shell from reading files: one of these is enough.
fn start_up_fixes(kind: &ToolCalls) -> [&'static str; 2] {
    let shell = kind.shape.split(' ').find(|word| is_shell(word.as_bytes()) || word.as_bytes() == FISH);
    match shell {
        Some("fish") => [
            "start fish with --no-config",
            "or put these lines of config.fish between `if status is-interactive` and `end`",
        ],
        _ if kind.is_login => {
            let documented = OPTIONS.iter().find(|(agent, _)| *agent == kind.caller);
            [
                documented.map_or("start the shell without -l", |(_, option)| option),
                "or begin the files of login shells with `case $- in *i*) ;; *) return ;; esac`",
            ]
        }
        _ if kind.sources_files => [
            "leave these lines out of the file that each command sources",
            "or source it only in the commands that need it",
        ],
        Some("bash") => [
            "do not set BASH_ENV: each `bash -c` reads the file that it names",
            "or let these lines run once for all commands, in the program that starts them",
        ],
        _ => ["let these lines run only in interactive shells", "or once for all commands"],
    }
}
