//! Reads which command a bash process executes when it forks. `ebpf/bash.h` documents what is read and why; the results of both must be equal.

use super::memory::Memory;
use super::script::Script;
use crate::wire::*;

/// command.h: enum command_type
const BASH_WHILE: u32 = 2;
const BASH_IF: u32 = 3;
const BASH_SIMPLE: u32 = 4;
const BASH_CONNECTION: u32 = 6;
const BASH_UNTIL: u32 = 8;
const BASH_GROUP: u32 = 9;
const BASH_SUBSHELL: u32 = 13;
const BASH_COPROCESS: u32 = 14;

const MAX_COMMAND_DEPTH: usize = 12;
const MAX_BUCKET_LENGTH: usize = 16;
/// variables.h: VAR_CONTEXT; SHELL_VAR
const CONTEXT_TABLE: u64 = 32;
const VARIABLE_VALUE: u64 = 8;

/// command.h: COMMAND
struct Command {
    kind: u32,
    value: u64,
}

impl Command {
    fn read(memory: &mut Memory, at: u64) -> Option<Command> {
        Some(Command { kind: memory.number(at)?, value: memory.pointer(at.wrapping_add(24))? })
    }
}

/// array.h: ARRAY_ELEMENT
#[derive(Clone, Copy)]
struct Element {
    index: u64,
    value: u64,
    next: u64,
    previous: u64,
}

impl Element {
    fn read(memory: &mut Memory, at: u64) -> Option<Element> {
        let [index, value, next, previous] = [0, 8, 16, 24].map(|offset| memory.pointer(at.wrapping_add(offset)));
        Some(Element { index: index?, value: value?, next: next?, previous: previous? })
    }
}

/// The arrays BASH_SOURCE, FUNCNAME and BASH_LINENO.
struct Arrays {
    count: u32,
    /// The address of the next element of each array.
    next_elements: [u64; 3],
    /// The address of the last element of BASH_LINENO.
    last_line: u64,
}

/// Reads the complete chain; returns `None` if it cannot be read or is inconsistent.
pub(super) fn read(script: &mut Script, layout: &WireBash) -> Option<()> {
    let mut arrays = find_arrays(script, layout)?;
    let line = current_line(script, layout).filter(|line| line.cast_signed() > 0);
    script.called.lines[0] = line.unwrap_or(0);
    for _ in 0..arrays.count.min(SCRIPT_FRAMES) {
        add_frame(script, &mut arrays)?;
    }
    if arrays.count > SCRIPT_FRAMES {
        script.called.flags |= SCRIPT_TRUNCATED;
    }
    if is_outermost(script, &arrays) {
        script.called.flags |= SCRIPT_OUTERMOST;
    } else {
        // Since bash 5.3, BASH_SOURCE contains $0 for functions that were read from `-c` or from standard input.
        let name = script.pointer(layout.dollar_variables)?;
        script.add_text(name, SCRIPT_FILE_BYTES)?;
    }
    let (interactive, texts) = (script.number(layout.interactive_shell)?, script.number(layout.parse_level)?);
    if interactive != 0 {
        script.called.flags |= SCRIPT_INTERACTIVE;
    }
    if texts == 0 {
        return Some(());
    }
    if layout.counts_from_zero != 0 {
        script.called.flags |= SCRIPT_FROM_ZERO;
    }
    super::bash_texts::correct(script, layout, arrays.count)
}

/// Returns the line being executed.
fn current_line(script: &mut Script, layout: &WireBash) -> Option<u32> {
    let line = script.number(layout.line_number)?;
    let address = script.pointer(layout.command)?;
    if address == 0 {
        return Some(line);
    }
    let command = Command::read(&mut script.memory, address)?;
    if command.kind == BASH_SIMPLE {
        return Some(line);
    }
    // `done < <(command)`: bash does not know this line.
    if script.number(layout.expanding_redirection)? != 0 {
        script.line_is_uncertain = true;
        return None;
    }
    compound_line(&mut script.memory, command)
}

/// Returns the line of a compound command.
fn compound_line(memory: &mut Memory, mut command: Command) -> Option<u32> {
    for _ in 0..MAX_COMMAND_DEPTH {
        let inner = match command.kind {
            BASH_WHILE | BASH_IF | BASH_CONNECTION | BASH_UNTIL | BASH_GROUP | BASH_SUBSHELL => 8,
            BASH_COPROCESS => 16,
            0..BASH_COPROCESS => return memory.number(command.value.wrapping_add(4)),
            _ => return None,
        };
        let inner = memory.pointer(command.value.wrapping_add(inner))?;
        command = Command::read(memory, inner)?;
    }
    None
}

fn find_arrays(script: &mut Script, layout: &WireBash) -> Option<Arrays> {
    let context = script.pointer(layout.global_variables)?;
    let memory = &mut script.memory;
    let table = memory.pointer(context.wrapping_add(CONTEXT_TABLE))?;
    let (buckets, bucket_count) = (memory.pointer(table)?, memory.number(table.wrapping_add(8))?);
    if !bucket_count.is_power_of_two() {
        return None;
    }
    let mut found = [(0, 0, 0); 3];
    for (found, hash) in found.iter_mut().zip(layout.hashes) {
        let bucket = buckets.wrapping_add(8 * u64::from(hash & (bucket_count - 1)));
        *found = find_array(memory, layout, bucket, hash)?;
    }
    let [(count, source, _), (functions, function, _), (lines, line, last_line)] = found;
    (functions == count && lines == count).then_some(Arrays {
        count,
        next_elements: [source, function, line],
        last_line,
    })
}

/// Finds an array in a hash table's bucket. Returns the number of its elements, and the addresses of the first and of the last. The list
/// of elements is a ring, closed by an element without a value.
fn find_array(memory: &mut Memory, layout: &WireBash, bucket: u64, wanted_hash: u32) -> Option<(u32, u64, u64)> {
    let mut next = memory.pointer(bucket)?;
    // hashlib.h: BUCKET_CONTENTS
    for _ in 0..MAX_BUCKET_LENGTH {
        let (hash, data) = (memory.number(next.wrapping_add(24))?, memory.pointer(next.wrapping_add(16))?);
        if hash == wanted_hash {
            let array = memory.pointer(data.wrapping_add(VARIABLE_VALUE))?;
            let count = memory.number(array.wrapping_add(layout.count_offset.into()))?;
            let head = memory.pointer(array.wrapping_add(layout.head_offset.into()))?;
            let ends = Element::read(memory, head)?;
            return Some((count, ends.next, ends.previous));
        }
        next = memory.pointer(next)?;
    }
    None
}

fn add_frame(script: &mut Script, arrays: &mut Arrays) -> Option<()> {
    let frame = script.called.frames;
    let [source, function, line] = arrays.next_elements.map(|at| Element::read(&mut script.memory, at));
    let (source, function, line) = (source?, function?, line?);
    if [source, function, line].iter().any(|element| element.index != frame.into()) {
        return None;
    }
    script.add_text(source.value, SCRIPT_FILE_BYTES)?;
    script.add_text(function.value, SCRIPT_FUNCTION_BYTES)?;
    script.called.lines[frame as usize + 1] = decimal(&mut script.memory, line.value);
    arrays.next_elements = [source.next, function.next, line.next];
    script.called.frames = frame + 1;
    Some(())
}

/// Parses a decimal number; returns 0 if the text is not a number.
fn decimal(memory: &mut Memory, address: u64) -> u32 {
    let text = memory.text(address, 12).unwrap_or_default();
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(&text).ok().filter(|_| is_number);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Whether the last frame has no caller. Such a frame is the script's top level, or a file read at startup.
fn is_outermost(script: &mut Script, arrays: &Arrays) -> bool {
    let last = Element::read(&mut script.memory, arrays.last_line).filter(|_| arrays.count != 0);
    last.is_some_and(|line| decimal(&mut script.memory, line.value) == 0)
}
