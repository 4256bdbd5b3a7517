//! Reads the line that a zsh process executes, and its callers.
//!
//! zsh counts the lines of a function from its beginning, and keeps the line where it begins. Each
//! element of `funcstack` has the line of its caller.

use spawnscope_data::event::{Chain, Frame, Language, Pid};

use super::memory::Memory;
use crate::callers::zsh::ZshLayout;

/// zsh.h: struct funcstack
const NAME: u64 = 8;
const FILE: u64 = 16;
const FIRST_LINE: u64 = 32;
const CALLER_LINE: u64 = 40;
const KIND: u64 = 48;
/// Values of `KIND`.
const SOURCED: u32 = 0;
const FUNCTION: u32 = 1;
const EVALUATED: u32 = 2;

const MAX_FRAMES: usize = 64;
const MAX_NAME_BYTES: usize = 4096;
/// What zsh takes for the file of commands that come from no file.
const NO_FILE: &[u8] = b"zsh";

/// Returns the call chain of a process; `None` if it cannot be read, or no line is known.
pub(super) fn chain(process: Pid, layout: &ZshLayout, bias: u64) -> Option<Chain> {
    let mut memory = Memory::new(process);
    let mut line = memory.pointer(bias.wrapping_add(layout.line))?;
    let mut entry = memory.pointer(bias.wrapping_add(layout.stack))?;
    let mut frames = Vec::new();
    while entry != 0 && frames.len() < MAX_FRAMES {
        let kind = memory.number(entry.wrapping_add(KIND))?;
        // Lines of an evaluated text are not in a file. The next frame outwards has the line of the
        // eval.
        if kind != EVALUATED {
            frames.push(frame(&mut memory, entry, kind, line)?);
        }
        line = memory.pointer(entry.wrapping_add(CALLER_LINE))?;
        entry = memory.pointer(entry)?;
    }
    // The script itself. The variable has its name only outside of the files that it sources.
    if frames.is_empty() {
        let file = memory.pointer(bias.wrapping_add(layout.script))?;
        let file = memory.text(file, MAX_NAME_BYTES)?;
        if file != NO_FILE && !file.is_empty() {
            let line = u32::try_from(line).ok().filter(|line| *line > 0);
            frames.push(Frame { file: Some(file), line, ..Frame::unknown(Language::Zsh) });
        }
    }
    (!frames.is_empty()).then_some(Chain { frames, is_truncated: entry != 0 })
}

/// Returns the frame of an element of the stack, in which `line` is executed.
fn frame(memory: &mut Memory, entry: u64, kind: u32, line: u64) -> Option<Frame> {
    let first = memory.pointer(entry.wrapping_add(FIRST_LINE))?;
    let line = match kind {
        SOURCED => line,
        FUNCTION => first.checked_add(line)?,
        _ => return None,
    };
    let file = memory.pointer(entry.wrapping_add(FILE))?;
    let file = (file != 0).then(|| memory.text(file, MAX_NAME_BYTES)).flatten();
    let name = memory.pointer(entry.wrapping_add(NAME))?;
    let name = (kind == FUNCTION).then(|| memory.text(name, MAX_NAME_BYTES)).flatten();
    Some(Frame {
        file: file.filter(|file| !file.is_empty()),
        function: name.filter(|name| !name.is_empty()),
        line: u32::try_from(line).ok().filter(|line| *line > 0),
        ..Frame::unknown(Language::Zsh)
    })
}
