//! The script of a dash: whether a function comes from it. eBPF counts the files that dash reads,
//! in order to know whether a function may come from another file. Here, a function belongs to the
//! script if the script defines it at that line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use spawnscope_data::event::Pid;

use crate::scripts::path_as_seen_by;

/// Maximum number of bytes of a script that are searched for a function.
const MAX_SEARCHED_BYTES: u64 = 1 << 20;

/// Whether the script at this path defines a function of this name, or one of unknown name, at this
/// line.
pub(super) fn defines(process: Pid, path: &[u8], name: &[u8], line: u32) -> bool {
    let Ok(file) = File::open(path_as_seen_by(process, path)) else {
        return false;
    };
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return false;
    }
    let lines = BufReader::new(file.take(MAX_SEARCHED_BYTES)).split(b'\n');
    let text = lines.map_while(Result::ok).nth(line as usize - 1);
    text.is_some_and(|text| is_definition(&text, name))
}

/// Whether a line contains the head of a function, such as `name ()`.
fn is_definition(line: &[u8], name: &[u8]) -> bool {
    let mut opening = (0..line.len()).filter(|at| line[*at] == b'(');
    opening.any(|at| {
        let closes = line[at + 1..].trim_ascii_start().starts_with(b")");
        let before = line[..at].trim_ascii_end();
        let is_name = before.strip_suffix(name).is_some_and(|rest| {
            let last = rest.last();
            name.is_empty() || last.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        });
        closes && is_name && !before.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_function_is_recognized() {
        for line in ["f() {", "  f ( ) {", "true; f() { :; }", "a() { :; }; f() {"] {
            assert!(is_definition(line.as_bytes(), b"f"), "{line}");
        }
        for line in ["", "f", "f $(x)", "of() {", "f2() {", "(f)"] {
            assert!(!is_definition(line.as_bytes(), b"f"), "{line}");
        }
        assert!(is_definition(b"set_() {", b""), "a function whose name is unknown");
        assert!(!is_definition(b"()", b"") && !is_definition(b"x=$(y)", b""));
    }
}
