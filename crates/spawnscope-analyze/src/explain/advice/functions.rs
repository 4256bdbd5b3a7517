//! Functions of languages that do the work of small programs (`functions.tsv`), so that code need
//! not launch them. Shells have a table of their own, `builtins.tsv`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::patterns::runtimes::Runtime;

static TABLE: LazyLock<BTreeMap<(&'static [u8], &'static str), &'static str>> = LazyLock::new(|| {
    let mut table = BTreeMap::new();
    let mut programs = "";
    for line in include_str!("functions.tsv").lines().filter(|line| !line.starts_with('#')) {
        match line.split_once('\t') {
            Some((language, functions)) => {
                table.extend(programs.split(' ').map(|program| ((program.as_bytes(), language), functions)));
            }
            None => programs = line,
        }
    }
    table
});

/// Returns the functions of a language that do the work of a program.
pub(super) fn functions(runtime: Runtime, program: &[u8]) -> Option<&'static str> {
    TABLE.get(&(program, runtime.label())).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::runtimes::NAMES;

    #[test]
    fn each_part_of_the_table_has_a_language() {
        for (program, language) in TABLE.keys() {
            let is_known = NAMES.iter().any(|(_, runtime)| runtime.label() == *language);
            assert!(is_known || ["Go", "Rust"].contains(language), "{language}");
            assert!(!program.is_empty(), "{language}");
        }
    }

    #[test]
    fn a_function_is_of_the_language_of_the_caller() {
        assert!(functions(Runtime::Awk, b"date").unwrap().starts_with("strftime"));
        assert!(functions(Runtime::Lua, b"date").unwrap().starts_with("os.date"));
        assert_eq!(functions(Runtime::Native, b"date"), None);
        assert_eq!(functions(Runtime::Awk, b"mkdir"), None);
    }
}
