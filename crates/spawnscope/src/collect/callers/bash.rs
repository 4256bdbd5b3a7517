//! GNU bash: where it keeps the command that it executes and the chain of its callers. It exports its variables; two that it
//! keeps to itself are found in the code of functions that it exports. Read by `ebpf/bash.h`, which says what is read.

use super::elf::{Elf, Symbol};
use crate::collect::ebpf::wire::WireBash;

/// What every bash says of itself: `@(#)Bash version 5.2.15(1) release GNU`.
const VERSION: &[u8] = b"@(#)Bash version ";

/// Bash has a fifth of this.
const MOST_CONSTANTS: u64 = 1 << 20;

const SYMBOLS: [&str; 12] = [
    "line_number",
    "global_variables",
    "parse_and_execute_level",
    "sourcelevel",
    "funcnest",
    "interactive",
    "interactive_shell",
    "running_trap",
    "expanding_redir",
    "dollar_vars",
    "executing_line_number",
    "have_unwind_protects",
];

/// The layout of bash 5.1 to 5.3; `None`: it is another program or version, or was stripped of what it exports.
pub(super) fn layout(program: &Elf<'_>) -> Option<WireBash> {
    let symbols = program.exports(&SYMBOLS);
    let symbol = |name: &str| symbols.get(name).copied();
    let address = |name: &str| symbol(name).map(|symbol: Symbol| symbol.address);
    // Before the file is searched for its version, which few have.
    let line_number = address("line_number")?;
    let [count_offset, head_offset] = array_offsets(version(program.constants(MOST_CONSTANTS)?)?)?;
    Some(WireBash {
        code_start: program.code_start()?,
        line_number,
        global_variables: address("global_variables")?,
        parse_level: address("parse_and_execute_level")?,
        source_level: address("sourcelevel")?,
        function_nesting: address("funcnest")?,
        interactive: address("interactive")?,
        interactive_shell: address("interactive_shell")?,
        running_trap: address("running_trap")?,
        expanding_redirection: address("expanding_redir")?,
        dollar_variables: address("dollar_vars")?,
        command: program.variable_read_by(symbol("executing_line_number")?)?,
        unwinds: program.variable_read_by(symbol("have_unwind_protects")?)?,
        count_offset,
        head_offset,
        hashes: [&b"BASH_SOURCE"[..], b"FUNCNAME", b"BASH_LINENO"].map(hash),
        reserved: 0,
    })
}

/// What bash files a name under (FNV-1).
fn hash(name: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| hash.wrapping_mul(16_777_619) ^ u32::from(*byte);
    name.iter().fold(2_166_136_261, step)
}

/// Major and minor version.
fn version(constants: &[u8]) -> Option<(u32, u32)> {
    let at = constants.windows(VERSION.len()).position(|window| window == VERSION)?;
    let mut numbers = constants[at + VERSION.len()..].split(|byte| !byte.is_ascii_digit());
    let mut number = || std::str::from_utf8(numbers.next()?).ok()?.parse().ok();
    Some((number()?, number()?))
}

/// Where an array has the count of its elements (in the low half of eight bytes), and its first element.
fn array_offsets(version: (u32, u32)) -> Option<[u32; 2]> {
    match version {
        (5, 1) => Some([16, 24]),
        (5, 2 | 3) => Some([8, 16]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_bash_says_of_itself() {
        let text = b"\0GNU bash\0@(#)Bash version 5.2.15(1) release GNU\0";
        assert_eq!(version(text), Some((5, 2)));
        assert_eq!(version(b"@(#)Bash version 10.30(1)"), Some((10, 30)));
        assert_eq!(version(b"@(#)Bash version "), None);
        assert_eq!(version(b"Bash version 5.2"), None);
    }

    #[test]
    fn names_are_hashed_as_bash_does() {
        assert_eq!(hash(b""), 0x811c_9dc5);
        assert_eq!(hash(b"a"), 0x050c_5d7e);
    }

    #[test]
    fn versions_whose_arrays_are_not_known_have_no_layout() {
        assert_eq!(array_offsets((5, 3)), Some([8, 16]));
        assert_eq!(array_offsets((5, 4)), None);
        assert_eq!(array_offsets((4, 4)), None);
    }
}
