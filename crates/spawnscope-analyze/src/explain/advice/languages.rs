//! Fixes in the language of the launching program: how to keep an answer, to launch without a
//! shell, to run several launches at a time, and to wait for a child. `functions` has what replaces
//! single programs.

use super::tables::rows;
use crate::patterns::runtimes::Runtime;

/// What a language offers.
pub(super) struct Language {
    /// How to keep the answer of a program.
    pub(super) keep: &'static str,
    /// How to keep the answers for several arguments.
    pub(super) keep_each: &'static str,
    /// How to launch a program without a shell.
    pub(super) without_shell: &'static str,
    /// How to do without the shell's redirections, `cd` and variable assignments. May be empty.
    pub(super) instead_of_syntax: &'static str,
    /// How to run several commands at a time. `{n}` stands for their number.
    pub(super) parallel: &'static str,
    /// How to wait for a child instead of polling.
    pub(super) wait: Vec<&'static str>,
}

/// Returns what a language offers.
pub(super) fn language(runtime: Runtime) -> Language {
    let name = format!("{runtime:?}");
    let row = rows(include_str!("languages.tsv")).find(|[of, ..]: &[&str; 9]| *of == name).unwrap_or([""; 9]);
    let [_, keep, keep_each, without_shell, instead_of_syntax, parallel, wait @ ..] = row;
    let wait = wait.into_iter().filter(|line| !line.is_empty()).collect();
    Language { keep, keep_each, without_shell, instead_of_syntax, parallel, wait }
}
