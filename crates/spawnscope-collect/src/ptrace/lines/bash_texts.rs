//! Lines in text that bash executes but does not read from a file. `ebpf/bash_texts.h` documents what is read and why; the results of both
//! must be equal.

use super::memory::Memory;
use super::script::Script;
use crate::wire::*;

/// Maximum number of elements of the unwind-protect list that are read.
const MAX_UNWINDS: usize = 512;
/// Traps below this number are signals and EXIT. The others are DEBUG, ERR and RETURN, whose commands keep the line that triggered
/// them.
const FIRST_TRAP_KEEPING_LINE: u32 = 66;

/// unwind_prot.c: UNWIND_ELT, the variant that contains the value of a variable
struct Unwind {
    next: u64,
    cleanup: u64,
    variable: u64,
    value: u32,
}

impl Unwind {
    fn read(memory: &mut Memory, at: u64) -> Option<Unwind> {
        Some(Unwind {
            next: memory.pointer(at)?,
            cleanup: memory.pointer(at.wrapping_add(8))?,
            variable: memory.pointer(at.wrapping_add(16))?,
            value: memory.number(at.wrapping_add(28))?,
        })
    }
}

/// The walk outwards through the unwind-protect list.
#[derive(Default)]
struct Walk {
    running_trap: u32,
    frame: u32,
    /// The number of lines that were replaced so far.
    replaced_lines: u32,
    /// The line that the latest element saved.
    saved_line: u32,
    /// Whether the latest elements saved whether bash is interactive.
    interactive_is_saved: bool,
    /// If the walk is in a text without a file: the line where the text began, and whether it is the text of a trap or of $( ).
    text: Option<(u32, bool)>,
}

/// Corrects the lines that bash counted within texts that did not come from a file.
pub(super) fn correct(script: &mut Script, layout: &WireBash, mut frames: u32) -> Option<()> {
    let mut walk = Walk { running_trap: script.number(layout.running_trap)?, ..Walk::default() };
    let mut next = script.pointer(layout.unwinds)?;
    for _ in 0..MAX_UNWINDS {
        if next == 0 {
            break;
        }
        let Some(unwind) = Unwind::read(&mut script.memory, next) else {
            break;
        };
        next = unwind.next;
        walk.step(script, layout, &unwind);
    }
    if script.called.flags & SCRIPT_OUTERMOST != 0 {
        frames = frames.wrapping_sub(1);
    }
    if next != 0 {
        script.called.known_lines = if walk.replaced_lines == 0 { walk.frame } else { 0 };
        return Some(());
    }
    walk.end_text(script);
    // A function that runs in a subshell saves nothing, so it is unknown which frames the lines belong to.
    if walk.replaced_lines != 0 && walk.frame != frames {
        script.called.known_lines = 0;
    }
    Some(())
}

impl Walk {
    /// Takes one step outwards. When bash executes a text, it saves the line where the text begins, then whether bash is interactive (except
    /// for eval), then the number of texts being executed. When it calls a function, it saves the function nesting depth; when it sources a
    /// file, the source level.
    fn step(&mut self, script: &mut Script, layout: &WireBash, unwind: &Unwind) {
        let variable = unwind.variable.wrapping_sub(script.bias);
        if unwind.cleanup == 0 {
            self.interactive_is_saved = false;
        } else if variable == layout.line_number {
            self.saved_line = unwind.value;
        } else if variable == layout.interactive {
            self.interactive_is_saved = true;
        } else if variable == layout.parse_level {
            self.end_text(script);
            self.text = Some((self.saved_line, self.interactive_is_saved));
        } else if variable == layout.function_nesting {
            self.end_text(script);
            self.frame += 1;
        } else if variable == layout.source_level {
            // This text is that of the file.
            self.text = None;
            self.frame += 1;
        }
    }

    /// Ends a text that did not come from a file, which is now known to have begun within the current frame: gives that frame the line where
    /// the text began.
    fn end_text(&mut self, script: &mut Script) {
        // The text of the command line (-c) has no such line, because no other text surrounds it.
        let Some((mut line, is_not_eval)) = self.text.take().filter(|(line, _)| *line != 0) else {
            return;
        };
        // The command of a trap was written elsewhere.
        let is_trap = (1..FIRST_TRAP_KEEPING_LINE).contains(&self.running_trap);
        if is_not_eval && (script.line_is_uncertain || is_trap) {
            line = 0;
        }
        self.replaced_lines += 1;
        if let Some(frame_line) = script.called.lines.get_mut(self.frame as usize) {
            *frame_line = line;
        }
    }
}
