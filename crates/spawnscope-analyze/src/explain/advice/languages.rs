//! Fixes in the language of the launching program: how to keep an answer, to launch without a
//! shell, to run several launches at a time, and to wait for a child. `functions` has what replaces
//! single programs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::tables::rows;
use crate::patterns::runtimes::Runtime;

/// What a language offers.
pub(super) struct Language {
    /// How to keep the answer of a program.
    pub(super) keep: &'static str,
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
pub(super) fn language(runtime: Runtime) -> &'static Language {
    static NAMES: LazyLock<BTreeMap<&'static str, Language>> = LazyLock::new(|| {
        let rows = rows(include_str!("languages.tsv"));
        rows.map(|[name, keep, without_shell, instead_of_syntax, parallel, wait @ ..]: [_; 8]| {
            let wait = wait.into_iter().filter(|line| !line.is_empty()).collect();
            (name, Language { keep, without_shell, instead_of_syntax, parallel, wait })
        })
        .collect()
    });
    static UNKNOWN: Language =
        Language { keep: "", without_shell: "", instead_of_syntax: "", parallel: "", wait: Vec::new() };
    NAMES.get(&format!("{runtime:?}")[..]).unwrap_or(&UNKNOWN)
}
