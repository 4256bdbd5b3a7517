//! Finds where zsh keeps the line that it executes, and its call chain. zsh exports both, because
//! its modules use them. `ebpf/zsh.h` reads the variables, and documents what they mean.

use super::elf::Elf;
use crate::wire::WireZsh;

const SYMBOLS: [&str; 5] = ["lineno", "funcstack", "scriptfilename", "intrap", "trapisfunc"];

/// Returns the layout of zsh; `None` if the program is another one.
pub(super) fn layout(program: &Elf<'_>) -> Option<WireZsh> {
    let symbols = program.exports(&SYMBOLS);
    let [line, calls, script, in_trap, trap_is_function] = SYMBOLS.map(|name| symbols.get(name).map(|it| it.address));
    Some(WireZsh {
        code_start: program.code_start()?,
        line: line?,
        calls: calls?,
        script: script?,
        in_trap: in_trap?,
        trap_is_function: trap_is_function?,
    })
}
