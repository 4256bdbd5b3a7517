//! Decodes the frames of a Python program into a call chain.

use zerocopy::FromBytes;

use crate::callers::python::{self, text};
use crate::wire::{UNKNOWN_COUNT, WirePythonCalled, WirePythonFrame};
use spawnscope_data::event::{Chain, Frame, Language};

/// CPython's name for module-level code.
const NO_FUNCTION: &[u8] = b"<module>";

/// Returns the chain of a record. `data` contains the frames, which follow the record. Returns
/// `None` if they do not have this format.
pub(crate) fn chain(called: &WirePythonCalled, data: &[u8]) -> Option<Chain> {
    let mut bytes = data.get(..called.bytes as usize)?;
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let start = bytes;
        let (head, rest) = WirePythonFrame::read_from_prefix(bytes).ok()?;
        let (file, rest) = rest.split_at_checked(head.file_bytes as usize)?;
        let (function, rest) = rest.split_at_checked(head.function_bytes as usize)?;
        let (table, rest) = rest.split_at_checked(head.table_bytes as usize)?;
        frames.push(frame(&head, file, function, table));
        let used = (start.len() - rest.len()).next_multiple_of(8);
        bytes = start.get(used..).unwrap_or_default();
    }
    Some(Chain { frames, is_truncated: called.is_truncated != 0 })
}

fn frame(head: &WirePythonFrame, file: &[u8], function: &[u8], table: &[u8]) -> Frame {
    let known = head.code_offset != UNKNOWN_COUNT;
    Frame {
        file: text::decode(file, head.file_width),
        function: text::decode(function, head.function_width).filter(|name| name != NO_FUNCTION),
        line: known.then(|| python::line(head.line_format, table, head.first_line, head.code_offset)).flatten(),
        ..Frame::unknown(Language::Python)
    }
}
