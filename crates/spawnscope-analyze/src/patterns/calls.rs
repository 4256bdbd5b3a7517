//! How a user writes the call of a program: by the name of the script where an interpreter runs one.

use crate::launch::{Exec, base_name};
use crate::patterns::runtimes::Runtime;

/// A program by the name of its file, and its arguments.
pub(crate) struct Call<'a> {
    /// The interpreter of a script, otherwise the program itself.
    pub(crate) runs: &'a [u8],
    /// Base name of the script or the program.
    pub(crate) name: &'a [u8],
    /// The arguments after the script or the program.
    pub(crate) arguments: Vec<&'a [u8]>,
}

impl<'a> Call<'a> {
    /// Returns `None` for an interpreter without a script, and where the arguments are unknown.
    pub(crate) fn of(exec: &Exec<'a>) -> Option<Call<'a>> {
        let (runs, mut arguments) = (exec.program_name(), exec.arguments());
        arguments.next()?;
        let file = match exec.interpreter() {
            None if takes_a_script(runs) => arguments.next().filter(|file| !file.starts_with(b"-"))?,
            _ => exec.path(),
        };
        Some(Call {
            runs,
            name: base_name(file),
            arguments: arguments.collect(),
        })
    }
}

/// Whether the first argument of a program is a script.
fn takes_a_script(program: &[u8]) -> bool {
    matches!(
        Runtime::named(program),
        Runtime::Node | Runtime::Perl | Runtime::Php | Runtime::Python | Runtime::Raku | Runtime::Ruby | Runtime::Shell
    )
}
