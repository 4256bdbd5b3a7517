//! What languages offer to code that launches programs: functions that do the work of small ones
//! (`functions.tsv`; `builtins.tsv` has the exact code for shells), and how to keep an answer, to
//! launch without a shell, to run several launches at a time, and to wait for a child
//! (`languages.tsv`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::context::RuleContext;
use super::shared_line::arguments_of;
use super::tables::{covers, rows};
use crate::patterns::runtimes::Runtime;
use crate::patterns::shells::Dialect;

/// For each program and language, the options that each row covers, and its functions.
type Table = BTreeMap<(&'static [u8], &'static str), Vec<[&'static str; 2]>>;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table::new();
    let mut programs = "";
    for [first, functions] in rows(include_str!("functions.tsv")) {
        if functions.is_empty() {
            programs = first;
            continue;
        }
        let parts = programs.split('|').zip(functions.split('|').map(str::trim));
        for (programs, functions) in parts.filter(|(_, functions)| !functions.is_empty()) {
            for (language, program) in
                first.split(',').flat_map(|each| programs.split_whitespace().map(move |one| (each, one)))
            {
                let (program, options) = program.split_once('=').unwrap_or((program, ""));
                table.entry((program.as_bytes(), language)).or_default().push([options, functions]);
            }
        }
    }
    table
});

/// Returns the functions of a language that do the work of a program with these arguments.
pub(super) fn functions_in(language: &str, program: &[u8], arguments: &[&[u8]]) -> Option<&'static str> {
    let rows = TABLE.get(&(program, language))?;
    rows.iter().find(|[options, _]| covers(options, arguments)).map(|[_, functions]| *functions)
}

/// Returns the functions of the code that made a launch that do its work.
pub(super) fn functions(context: &RuleContext<'_, '_>, launch: u32) -> Option<&'static str> {
    let of_shell = |dialect: Dialect| match dialect {
        Dialect::Bash => "bash",
        Dialect::Ksh => "ksh",
        Dialect::Zsh => "zsh",
        Dialect::Posix => "sh",
    };
    let language = match Runtime::of_parent(context.forest(), launch) {
        Runtime::Shell => of_shell(Dialect::of_parent(context.forest(), launch as usize)?),
        runtime => runtime.name(),
    };
    let exec = context.launch(launch).execs.last().filter(|exec| !exec.argv_cut)?;
    functions_in(language, context.launch(launch).command.name, &arguments_of(exec))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_the_table_has_a_language() {
        for (program, language) in TABLE.keys() {
            let is_known = Runtime::ALL.iter().any(|runtime| runtime.name() == *language);
            assert!(is_known || ["Go", "Rust", "bash", "ksh", "zsh", "sh"].contains(language), "{language}");
            assert!(!program.is_empty(), "{language}");
        }
    }

    #[test]
    fn a_function_is_of_the_language_of_the_caller_and_knows_the_options() {
        assert!(functions_in("awk", b"date", &[b"+%F"]).unwrap().starts_with("strftime"));
        assert!(functions_in("awk", b"date", &[b"-d", b"1 Mar", b"+%s"]).unwrap().starts_with("mktime"));
        assert_eq!(functions_in("Python", b"date", &[b"-d", b"1 Mar", b"+%s"]), None);
        assert_eq!(functions_in("Python", b"cksum", &[b"f"]), None);
        assert_eq!(functions_in("sh", b"date", &[b"+%F"]), None);
        assert_eq!(functions_in("sh", b"cut", &[b"-c1-60"]), None);
        assert!(functions_in("bash", b"cut", &[b"-c1-60"]).is_some());
        assert_eq!(functions_in("awk", b"mkdir", &[]), None);
    }
}
