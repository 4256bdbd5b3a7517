//! Lines of text that bash executes from no file. `ebpf/bash_texts.h` documents what is read and why; both must report the same.

use super::memory::Memory;
use super::script::Script;
use crate::wire::*;

const UNWINDS: usize = 512;
/// Traps below this number are signals and EXIT. From here on they are DEBUG, ERR and RETURN, whose commands keep the line they run for.
const FIRST_KEEPING_TRAP: u32 = 66;

/// unwind_prot.c: UNWIND_ELT, if it holds the value of a variable
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
    overridden: u32,
    saved_line: u32,
    saved_interactive: bool,
    /// The line where the text began that is being walked out of, and whether it was executed aside from the script.
    entered: Option<(u32, bool)>,
}

/// Corrects the lines that were counted within texts that came from no file.
pub(super) fn correct(script: &mut Script, layout: &WireBash, mut frames: u32) -> Option<()> {
    let mut walk = Walk {
        running_trap: script.number(layout.running_trap)?,
        ..Walk::default()
    };
    let mut next = script.pointer(layout.unwinds)?;
    for _ in 0..UNWINDS {
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
        script.called.known_lines = if walk.overridden == 0 { walk.frame } else { 0 };
        return Some(());
    }
    walk.settle(script);
    // A function that runs in a subshell saves nothing, so it is unknown which frames the lines belong to.
    if walk.overridden != 0 && walk.frame != frames {
        script.called.known_lines = 0;
    }
    Some(())
}

impl Walk {
    /// One step outwards. Executing a text saves the line it began at, then whether bash is interactive (except for eval), then the number of
    /// texts being executed. A function saves its nesting depth, and the reading of a file saves the source level.
    fn step(&mut self, script: &mut Script, layout: &WireBash, unwind: &Unwind) {
        let variable = unwind.variable.wrapping_sub(script.bias);
        if unwind.cleanup == 0 {
            self.saved_interactive = false;
        } else if variable == layout.line_number {
            self.saved_line = unwind.value;
        } else if variable == layout.interactive {
            self.saved_interactive = true;
        } else if variable == layout.parse_level {
            self.settle(script);
            self.entered = Some((self.saved_line, self.saved_interactive));
        } else if variable == layout.function_nesting {
            self.settle(script);
            self.frame += 1;
        } else if variable == layout.source_level {
            // The file's own text.
            self.entered = None;
            self.frame += 1;
        }
    }

    /// The text being executed began within the current frame, and did not come from a file.
    fn settle(&mut self, script: &mut Script) {
        // The command line's own text has no line: nothing surrounds it.
        let Some((mut line, aside)) = self.entered.take().filter(|(line, _)| *line != 0) else {
            return;
        };
        // The command of a trap was written elsewhere.
        let is_of_trap = (1..FIRST_KEEPING_TRAP).contains(&self.running_trap);
        if aside && (script.doubt || is_of_trap) {
            line = 0;
        }
        self.overridden += 1;
        if let Some(place) = script.called.lines.get_mut(self.frame as usize) {
            *place = line;
        }
    }
}
