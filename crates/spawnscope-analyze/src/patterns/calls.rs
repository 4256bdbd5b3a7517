//! The call of a program as a user writes it. If an interpreter runs a script, the name of the
//! script is used.

use crate::model::launch::{Exec, base_name};
use crate::patterns::runtimes::Runtime;

/// A program by the name of its file, and its arguments.
pub(crate) struct Call<'a> {
    /// Base name of the script or the program.
    pub(crate) name: &'a [u8],
    /// The arguments after the script or the program.
    pub(crate) arguments: Vec<&'a [u8]>,
}

impl<'a> Call<'a> {
    /// Reads the call from the arguments of an exec. `None` for an interpreter without a script, or
    /// if the arguments are unknown.
    pub(crate) fn of(exec: &Exec<'a>) -> Option<Call<'a>> {
        let mut arguments = exec.arguments();
        arguments.next()?;
        let file = match exec.interpreter() {
            None if takes_a_script(exec.program_name()) => arguments.next().filter(|file| !file.starts_with(b"-"))?,
            _ => exec.path(),
        };
        Some(Call { name: base_name(file), arguments: arguments.collect() })
    }
}

/// Whether the first argument of a program is a script.
fn takes_a_script(program: &[u8]) -> bool {
    matches!(
        Runtime::named(program),
        Runtime::Node | Runtime::Perl | Runtime::Php | Runtime::Python | Runtime::Raku | Runtime::Ruby | Runtime::Shell
    )
}
