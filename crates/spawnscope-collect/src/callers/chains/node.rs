//! Decodes a call chain that the hook in a Node.js program has reported. It is a file name that
//! consists of a prefix and of three lines for each frame, the innermost frame first: the line
//! number (0: unknown), the file, and the function (empty: none).

use crate::wire::NODE_PREFIX;
use spawnscope_data::event::{Chain, Frame, Language};

/// The start of a file's URL.
const FILE: &[u8] = b"file://";

/// Returns the chain in a file name; `None` if the name does not begin with the prefix.
pub(crate) fn chain(name: &[u8]) -> Option<Chain> {
    let text = name.strip_prefix(NODE_PREFIX)?;
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    let mut lines = text.split(|byte| *byte == b'\n');
    let mut frames = Vec::new();
    while let (Some(line), Some(file), Some(function)) = (lines.next(), lines.next(), lines.next()) {
        let line: Option<u32> = std::str::from_utf8(line).ok().and_then(|line| line.parse().ok());
        frames.push(Frame {
            file: Some(path(file)).filter(|file| !file.is_empty()),
            line: line.filter(|line| *line != 0),
            function: Some(function.to_vec()).filter(|function| !function.is_empty()),
            ..Frame::unknown(Language::Node)
        });
    }
    (!frames.is_empty()).then_some(Chain { frames, is_truncated: false })
}

/// Returns the path of a file. ECMAScript modules report a URL instead, with `%20` for a space.
fn path(file: &[u8]) -> Vec<u8> {
    let Some(encoded) = file.strip_prefix(FILE) else { return file.to_vec() };
    let mut path = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let [first, after @ ..] = rest {
        let code = after.get(..2).filter(|_| *first == b'%');
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        path.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_three_lines_for_each_frame() {
        let name = [NODE_PREFIX.as_slice(), b"5\n/a.js\nrun\n9\nfile:///x%20y/b.mjs\n\n\0"].concat();
        let read = chain(&name).unwrap();
        let positions: Vec<_> =
            read.frames.iter().map(|frame| (frame.file.as_deref(), frame.line, frame.function.as_deref())).collect();
        assert_eq!(
            positions,
            [(Some(&b"/a.js"[..]), Some(5), Some(&b"run"[..])), (Some(&b"/x y/b.mjs"[..]), Some(9), None)]
        );
    }

    #[test]
    fn a_name_without_the_prefix_is_no_chain() {
        assert_eq!(chain(b"/dev/null\0"), None);
        assert_eq!(chain(NODE_PREFIX), None);
        assert_eq!(path(b"file:///100%"), b"/100%");
        let start = NODE_PREFIX.first_chunk().copied().unwrap();
        assert_eq!(u64::from_le_bytes(start), crate::wire::NODE_PREFIX_START);
    }
}
