//! Programs with subcommands (`git log`, `docker run`, `python3 -m pip`): finds the subcommand in
//! their arguments.

use super::programs::options_with_values;
use crate::model::launch::{Exec, base_name, is_version_of};

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
    let with_value = options_with_values(program)?;
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
