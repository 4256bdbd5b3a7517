//! Fixes in the language of the launching program: how to keep an answer, to launch without a shell, to run several launches at a time, and to
//! wait for a child. `functions` has what replaces single programs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::functions::functions;
use crate::model::tree::Forest;
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::Dialect;
use crate::patterns::words::Words;

/// Programs whose work on text or numbers a shell can do itself.
const SHELL_WORK: Words =
    Words("awk basename cat cut date dirname echo expr gawk grep head mawk printf sed seq tail tr wc");

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
        let rows = include_str!("languages.tsv").lines().filter(|row| !row.starts_with('#'));
        rows.map(|row| {
            let mut columns = row.split('\t');
            let [name, keep, without_shell, instead_of_syntax, parallel] =
                std::array::from_fn(|_| columns.next().unwrap_or_default());
            (name, Language { keep, without_shell, instead_of_syntax, parallel, wait: columns.collect() })
        })
        .collect()
    });
    static UNKNOWN: Language =
        Language { keep: "", without_shell: "", instead_of_syntax: "", parallel: "", wait: Vec::new() };
    NAMES.get(&format!("{runtime:?}")[..]).unwrap_or(&UNKNOWN)
}

/// Returns how a language launches without a copy of the page tables.
pub(super) fn without_copying(runtime: Runtime) -> Vec<&'static str> {
    let rows = include_str!("copies.tsv").lines().filter_map(|row| row.split_once('\t'));
    let runtime = format!("{runtime:?}");
    rows.filter(|(names, _)| names.split(' ').any(|name| name == runtime)).map(|(_, line)| line).collect()
}

const BASH_WORK: &str =
    "  use the shell itself: ${x##*/}, ${x/a/b}, $((...)), read, [[ =~ ]], printf '%(%F)T' for dates (bash 4.2)";
const KSH_WORK: &str = "  use the shell itself: ${x##*/}, ${x/a/b}, $((...)), read, [[ =~ ]]";
const POSIX_WORK: &str = "  use the shell itself: ${x##*/}, ${x%.*}, $((...)), read, case $x in PATTERN) ...;; esac";

/// Whether a shell can do the work of a program on text or numbers.
pub(super) fn is_shell_work(program: &[u8]) -> bool {
    SHELL_WORK.contains(program)
}

/// Returns how the code that made a launch does the work of a small program itself. `None` if it is not known to: no shell does what openssl
/// does. Without a program, it is the work of a command line.
pub(super) fn without_launching(forest: &Forest<'_>, launch: u32, program: Option<&[u8]>) -> Option<String> {
    let runtime = Runtime::of_parent(forest, launch);
    match (runtime, program) {
        (Runtime::Shell, Some(program)) if !SHELL_WORK.contains(program) => None,
        (Runtime::Shell, _) => Some(
            match Dialect::of_parent(forest, launch as usize) {
                Some(Dialect::Bash) => BASH_WORK,
                Some(Dialect::Zsh | Dialect::Ksh) => KSH_WORK,
                Some(Dialect::Posix) | None => POSIX_WORK,
            }
            .to_owned(),
        ),
        (_, Some(program)) => functions(runtime, program).map(|functions| format!("  {functions}")),
        (_, None) => None,
    }
}
