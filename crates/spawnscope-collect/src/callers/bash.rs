//! Finds where GNU bash stores the command being executed and its call chain. Bash exports most of
//! these variables; the two that it does not export are found in the code of exported functions.
//! `ebpf/bash.h` reads the variables, and documents what they mean.

use super::elf::Elf;
use crate::wire::WireBash;

/// The version string in every bash: `@(#)Bash version 5.2.15(1) release GNU`.
const VERSION: &[u8] = b"@(#)Bash version ";

/// Upper limit for the size of bash's read-only data, in bytes. Its real size is about a fifth of
/// this.
const MAX_CONSTANT_BYTES: u64 = 1 << 20;

const FNV_OFFSET: u32 = 2_166_136_261;

const SYMBOLS: [&str; 12] = [
    "line_number", "global_variables", "parse_and_execute_level", "sourcelevel", "funcnest", "interactive",
    "interactive_shell", "running_trap", "expanding_redir", "dollar_vars", "executing_line_number",
    "have_unwind_protects",
];

/// The layout details that differ between versions.
#[derive(Debug, PartialEq)]
struct VersionDetails {
    /// Offsets in an array: of the element count (the low half of eight bytes) and of the pointer
    /// to the element list.
    array_offsets: [u32; 2],
    /// The initial value of the name hash.
    hash_start: u32,
    /// Whether this version counts the lines of `-c` from 0.
    counts_from_zero: bool,
}

/// Returns the layout of bash 4.4 to 5.3; `None` if the program is another one or another version,
/// or exports no symbols.
pub(super) fn layout(program: &Elf<'_>) -> Option<WireBash> {
    let symbols = program.exports(&SYMBOLS);
    // Check this symbol before the version string is searched for, because few other programs have
    // it.
    let line_number = symbols.get("line_number")?.address;
    let details = version_details(version(program.read_only_data(MAX_CONSTANT_BYTES)?)?)?;
    let [count_offset, head_offset] = details.array_offsets;
    Some(WireBash {
        code_start: program.code_start()?,
        line_number,
        global_variables: symbols.get("global_variables")?.address,
        parse_level: symbols.get("parse_and_execute_level")?.address,
        source_level: symbols.get("sourcelevel")?.address,
        function_nesting: symbols.get("funcnest")?.address,
        interactive: symbols.get("interactive")?.address,
        interactive_shell: symbols.get("interactive_shell")?.address,
        running_trap: symbols.get("running_trap")?.address,
        expanding_redirection: symbols.get("expanding_redir")?.address,
        dollar_variables: symbols.get("dollar_vars")?.address,
        command: program.variable_read_by(*symbols.get("executing_line_number")?)?,
        unwinds: program.variable_read_by(*symbols.get("have_unwind_protects")?)?,
        count_offset,
        head_offset,
        hashes: [&b"BASH_SOURCE"[..], b"FUNCNAME", b"BASH_LINENO"].map(|name| hash(details.hash_start, name)),
        counts_from_zero: details.counts_from_zero.into(),
    })
}

/// Returns the hash of a name in bash's tables (FNV-1, except for the initial value in 4.4).
fn hash(start: u32, name: &[u8]) -> u32 {
    name.iter().fold(start, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(*byte))
}

/// Returns the major and minor version.
fn version(constants: &[u8]) -> Option<(u32, u32)> {
    let at = constants.windows(VERSION.len()).position(|window| window == VERSION)?;
    let numbers = constants[at + VERSION.len()..].split(|byte| !byte.is_ascii_digit());
    let mut numbers = numbers.map_while(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn version_details(version: (u32, u32)) -> Option<VersionDetails> {
    let (array_offsets, hash_start) = match version {
        (4, 4) => ([16, 24], 0),
        (5, 0) => ([16, 32], FNV_OFFSET),
        (5, 1) => ([16, 24], FNV_OFFSET),
        (5, 2 | 3) => ([8, 16], FNV_OFFSET),
        _ => return None,
    };
    Some(VersionDetails { array_offsets, hash_start, counts_from_zero: version < (5, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_version_string() {
        let text = b"\0GNU bash\0@(#)Bash version 5.2.15(1) release GNU\0";
        assert_eq!(version(text), Some((5, 2)));
        assert_eq!(version(b"@(#)Bash version 10.30(1)"), Some((10, 30)));
        assert_eq!(version(b"@(#)Bash version "), None);
        assert_eq!(version(b"Bash version 5.2"), None);
    }

    #[test]
    fn names_are_hashed_as_in_bash() {
        assert_eq!(hash(FNV_OFFSET, b""), 0x811c_9dc5);
        assert_eq!(hash(FNV_OFFSET, b"a"), 0x050c_5d7e);
        assert_eq!(hash(0, b"ab"), (0x61 * 16_777_619) ^ 0x62);
    }

    #[test]
    fn unknown_versions_have_no_layout() {
        assert_eq!(version_details((5, 3)).unwrap().array_offsets, [8, 16]);
        assert_eq!(version_details((5, 4)), None);
        assert_eq!(version_details((4, 4)).unwrap().hash_start, 0);
        assert_eq!(version_details((4, 3)), None);
    }
}
