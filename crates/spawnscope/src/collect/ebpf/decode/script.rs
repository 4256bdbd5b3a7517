//! The call chain of a shell's script, from what the shell itself keeps of it.

use crate::collect::ebpf::wire::*;
use crate::event::{Chain, Frame, Language};

/// What a shell has for one frame.
struct Kept<'a> {
    file: &'a [u8],
    function: &'a [u8],
}

/// The chain in a record and the data behind it; without frames where nothing is known. `None`: not a record of this format.
pub(super) fn chain(called: &WireScriptCalled, data: &[u8]) -> Option<Chain> {
    let data = data.get(..called.data_bytes as usize)?;
    let mut texts = data.split(|&byte| byte == 0);
    let mut kept = Vec::new();
    for _ in 0..called.frames {
        let (file, function) = (texts.next()?, texts.next()?);
        kept.push(Kept { file, function });
    }
    match called.interpreter {
        INTERPRETER_BASH => Some(bash(called, &kept, texts.next().unwrap_or_default())),
        _ => None,
    }
}

fn line(called: &WireScriptCalled, frame: usize) -> Option<u32> {
    let is_known = frame < called.known_lines as usize && called.flags & SCRIPT_INTERACTIVE == 0;
    let line = called.lines.get(frame).copied().filter(|_| is_known);
    line.filter(|&line| line != 0)
}

/// The name that bash gives to code outside of functions in a file that is read by another.
const SOURCE: &[u8] = b"source";
/// And in the script itself, whose frame is the outermost.
const MAIN: &[u8] = b"main";

/// `own_name` is $0 where it matters, and else empty.
fn bash(called: &WireScriptCalled, kept: &[Kept<'_>], own_name: &[u8]) -> Chain {
    let is_truncated = called.flags & SCRIPT_TRUNCATED != 0;
    let ends = called.flags & SCRIPT_OUTERMOST != 0;
    let outermost = kept.last().filter(|_| ends && !is_truncated);
    let is_script = outermost.is_some_and(|frame| frame.function == MAIN);
    let frame = |(at, kept): (usize, &Kept<'_>)| {
        let is_main = is_script && at + 1 == called.frames as usize;
        let is_function = !is_main && kept.function != SOURCE;
        // What bash calls the place of functions that came from no file.
        let came_in = kept.file == MAIN || kept.file == own_name || own_name.is_empty();
        let is_placeholder = is_function && (kept.file == b"environment" || (!ends && came_in));
        Frame {
            function: Some(kept.function)
                .filter(|_| is_function)
                .filter(known)
                .map(<[u8]>::to_vec),
            file: Some(kept.file)
                .filter(|_| !is_placeholder)
                .filter(known)
                .map(<[u8]>::to_vec),
            line: line(called, at),
            ..Frame::unknown(Language::Bash)
        }
    };
    let mut frames: Vec<Frame> = kept.iter().enumerate().map(frame).collect();
    // What `-c` was given, or came from standard input.
    let is_interactive = called.flags & SCRIPT_INTERACTIVE != 0;
    if !ends && !is_truncated && !is_interactive {
        frames.push(Frame {
            line: line(called, kept.len()),
            ..Frame::unknown(Language::Bash)
        });
    }
    Chain { frames, is_truncated }
}

fn known(text: &&[u8]) -> bool {
    !text.is_empty()
}
