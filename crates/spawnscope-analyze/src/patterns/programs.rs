//! What is known about programs. One table (`programs.tsv`) has it, so that a fact about a program
//! is written once, whichever code asks for it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::{Words, rows};
use crate::model::launch::{Exec, base_name, is_version_of};

const TABLE: &str = include_str!("programs.tsv");

/// The properties of each program, its options with values, and its subcommands that only answer
/// questions.
static PROGRAMS: LazyLock<HashMap<&'static [u8], [Words; 3]>> = LazyLock::new(|| {
    let row = |[program, columns @ ..]: [&'static str; 4]| (program.as_bytes(), columns.map(Words));
    rows(TABLE).map(row).collect()
});

/// Whether a program or builtin, named without a directory, has a property.
pub(crate) fn has_property(program: &[u8], property: &str) -> bool {
    PROGRAMS.get(program).is_some_and(|[properties, ..]| properties.contains(property.as_bytes()))
}

/// Whether a program whose name may end with a version, such as `gcc-12`, has a property.
pub(crate) fn version_has_property(name: &[u8], property: &str) -> bool {
    let is_of_name = |byte: &u8| !byte.is_ascii_digit() && !b".-".contains(byte);
    let least = name.iter().rposition(is_of_name).map_or(0, |last| last + 1);
    (least..=name.len()).any(|end| has_property(&name[..end], property))
}

/// Whether the word after this option of a program is its value.
pub(crate) fn takes_value(program: &[u8], option: &[u8]) -> bool {
    PROGRAMS.get(program).is_some_and(|[_, with_value, _]| with_value.contains(option))
}

/// Whether a subcommand of a program only answers questions.
pub(super) fn is_question(program: &[u8], subcommand: &[u8]) -> bool {
    PROGRAMS.get(program).is_some_and(|[.., questions]| questions.contains(subcommand))
}

/// The option of Python that names a module.
const MODULE: &[u8] = b"-m";

/// Returns the subcommand of an exec: the first argument that is not an option, or the first option
/// if there are only options. `None` for programs without subcommands.
pub(crate) fn subcommand_of<'a>(exec: &Exec<'a>) -> Option<&'a [u8]> {
    let program = base_name(exec.path());
    if is_version_of(program, b"python") {
        let mut options = exec.arguments().skip(1).take_while(|argument| argument.starts_with(b"-"));
        options.find(|option| *option == MODULE)?;
        return exec.arguments().skip_while(|argument| *argument != MODULE).nth(1);
    }
    let [_, with_value, _] = PROGRAMS.get(program).filter(|_| has_property(program, "subcommands"))?;
    let mut arguments = exec.arguments().skip(1);
    let mut first = None;
    while let Some(argument) = arguments.next() {
        // Programs that rustup installs accept a toolchain such as `+nightly` first.
        let is_option = argument.starts_with(b"-") || argument.starts_with(b"+");
        if !is_option {
            return Some(argument);
        }
        first.get_or_insert(argument);
        if with_value.contains(argument) {
            arguments.next();
        }
    }
    first
}

/// Where a subcommand works: the directory, and the options before it, such as `-C REPOSITORY` or
/// `--context CLUSTER`.
type Place<'a> = (Option<&'a [u8]>, Vec<&'a [u8]>);

/// Returns where a subcommand works. `None` for programs without subcommands.
pub(crate) fn place_of<'a>(exec: &Exec<'a>) -> Option<Place<'a>> {
    let subcommand = subcommand_of(exec)?;
    Some((exec.cwd(), exec.arguments().skip(1).take_while(|argument| *argument != subcommand).collect()))
}

/// Formats a program with its subcommand, as it is typed.
pub(crate) fn label(program: &[u8], subcommand: &[u8]) -> Vec<u8> {
    let option: &[u8] = if is_version_of(program, b"python") { b" -m " } else { b" " };
    [program, option, subcommand].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn names_may_have_versions() {
        let compilers = ["gcc", "gcc-12", "g++-13.2", "c99", "clang++", "x86_64-linux-gnu-gcc", "gccgo", "12", ""];
        let known = compilers.map(|name| version_has_property(name.as_bytes(), "compiler"));
        assert_eq!(known, [true, true, true, true, true, false, false, false, false]);
    }

    fn files_below(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
    }

    /// Returns the property that a call asks for.
    fn property_in(call: &str) -> Option<&str> {
        Some(call.lines().next()?.split("\")").next()?.rsplit_once(", \"")?.1)
    }

    /// A property that is written in another way would silently be that of no program.
    #[test]
    fn the_table_is_sorted_and_its_head_names_the_properties_of_rows_and_code() {
        let programs: Vec<&str> = rows(TABLE).map(|[program]| program).collect();
        assert!(programs.is_sorted_by(|one, next| one < next));
        let meanings = TABLE.lines().filter_map(|line| line.strip_prefix("# ")?.split_once(": "));
        let named: BTreeSet<&str> = meanings.map(|(name, _)| name).filter(|name| !name.contains(' ')).collect();
        let of_rows: Vec<&str> = rows(TABLE).flat_map(|[_, properties]| properties.split(' ')).collect();
        let files = files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let of_code: BTreeSet<&str> = code.split("has_property(").skip(1).filter_map(property_in).collect();
        assert_eq!(of_rows.into_iter().collect::<BTreeSet<_>>(), named, "rows");
        assert_eq!(of_code, named, "code");
    }
}
