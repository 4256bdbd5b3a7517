//! Reads the line that a zsh process executes, and its callers. `ebpf/zsh.h` documents what is read and why; the results of both must be
//! equal.

use spawnscope_data::event::{Chain, Pid};

use super::memory::Memory;
use super::script::Script;
use crate::wire::*;

/// zsh.h: struct funcstack
const NAME: u64 = 8;
const FILE: u64 = 16;
const CALLER: u64 = 24;
const FIRST_LINE: u64 = 32;
const CALLER_LINE: u64 = 40;
const KIND: u64 = 48;

/// Returns the call chain of a process; `None` if it cannot be read, or no line is known.
pub(super) fn chain(process: Pid, layout: &WireZsh, bias: u64) -> Option<Chain> {
    let mut script = Script::new(Memory::new(process), bias, INTERPRETER_ZSH);
    let mut line = script.pointer(layout.line)?;
    let mut call = script.pointer(layout.calls)?;
    let mut file = script.pointer(layout.script)?;
    if script.number(layout.in_trap)? != 0 && script.number(layout.trap_is_function)? == 0 {
        script.called.known_lines = 0;
    }
    for _ in 0..ZSH_MAX_CALLS {
        if call == 0 || add_frame(&mut script, call, line).is_none() {
            break;
        }
        line = script.memory.pointer(call.wrapping_add(CALLER_LINE))?;
        file = script.memory.pointer(call.wrapping_add(CALLER))?;
        call = script.memory.pointer(call)?;
    }
    if call != 0 {
        script.called.flags = SCRIPT_TRUNCATED;
    } else if script.add_text(file, SCRIPT_FILE_BYTES).is_some() {
        script.called.lines[script.called.frames as usize] = line as u32;
    }
    script.chain()
}

/// Adds the frame of a call, in which `line` is executed.
fn add_frame(script: &mut Script, call: u64, line: u64) -> Option<()> {
    let kind = script.memory.number(call.wrapping_add(KIND))?;
    if kind == ZSH_EVALUATED {
        return Some(());
    }
    if script.called.frames >= SCRIPT_FRAMES {
        return None;
    }
    let is_function = kind == ZSH_FUNCTION;
    let first = script.memory.pointer(call.wrapping_add(FIRST_LINE)).filter(|_| is_function);
    let file = script.memory.pointer(call.wrapping_add(FILE));
    let name = script.memory.pointer(call.wrapping_add(NAME)).filter(|_| is_function);
    script.add_text_if_known(file, SCRIPT_FILE_BYTES);
    script.add_text_if_known(name, SCRIPT_FUNCTION_BYTES);
    script.called.lines[script.called.frames as usize] = line.wrapping_add(first.unwrap_or(0)) as u32;
    script.called.frames += 1;
    Some(())
}
