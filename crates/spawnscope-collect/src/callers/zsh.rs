//! Finds where zsh keeps the line that it executes, and its call chain. zsh exports both, because
//! its modules use them. Only a tracer reads them (`ptrace/lines/zsh.rs`).

use super::elf::Elf;

/// The addresses of zsh's variables in its ELF file.
#[derive(Debug)]
pub(crate) struct ZshLayout {
    /// `lineno`
    pub(crate) line: u64,
    /// `funcstack`
    pub(crate) stack: u64,
    /// `scriptfilename`
    pub(crate) script: u64,
}

/// Returns the layout of zsh; `None` if the program is another one.
pub(super) fn layout(program: &Elf<'_>) -> Option<ZshLayout> {
    let symbols = program.exports(&["lineno", "funcstack", "scriptfilename"]);
    let address = |name| symbols.get(name).map(|symbol| symbol.address);
    Some(ZshLayout { line: address("lineno")?, stack: address("funcstack")?, script: address("scriptfilename")? })
}
