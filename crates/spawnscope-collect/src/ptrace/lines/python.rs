//! Reads the frames of a Python program when it forks. `ebpf/python.h` documents what is read and why; the results of both must be equal.

use spawnscope_data::event::{Chain, Pid};
use spawnscope_system::procfs;
use spawnscope_system::ptrace::Registers;
use zerocopy::{FromZeros, IntoBytes};

use super::memory::Memory;
use crate::callers::chains;
use crate::wire::*;

/// Bits of PyASCIIObject.state. The two lowest bits are for interning, the next three are the character width.
const TEXT_COMPACT: u32 = 0x20;
const TEXT_ASCII: u32 = 0x40;
/// enum _frameowner. With these two owners, the entry is not a frame of the program: it marks where C code entered the interpreter.
const OWNED_BY_INTERPRETER: u8 = 3;
const OWNED_BY_C_STACK: u8 = 4;
/// Lengths, character width and type address have the same offsets in all versions with a global interpreter lock.
const OBJECT_TYPE: u64 = 8;
const OBJECT_SIZE: u64 = 16;
const BYTES_DATA: u64 = 32;

/// Reads frames outwards.
struct Reader<'a> {
    memory: Memory,
    layout: &'a WirePython,
    /// The address of `PyCode_Type`.
    code_type: u64,
    /// The address of the next frame outwards.
    next: u64,
    frames: u32,
    data: Vec<u8>,
}

/// Returns the call chain of a stopped thread; `None` if it cannot be read. `is_nested`: the thread is in a nested pid namespace.
pub(super) fn chain(thread: Pid, layout: &WirePython, bias: u64, is_nested: bool) -> Option<Chain> {
    let mut memory = Memory::new(thread);
    let bias = interpreter_bias(&mut memory, layout, bias)?;
    let state = thread_state(&mut memory, layout, bias, thread, is_nested)?;
    let holder = match layout.thread_c_frame {
        0 => state,
        offset => memory.pointer(at(state, offset))?,
    };
    let next = memory.pointer(at(holder, layout.holder_frame)).filter(|frame| *frame != 0)?;
    let mut reader =
        Reader { memory, layout, code_type: layout.code_type.wrapping_add(bias), next, frames: 0, data: Vec::new() };
    // There may be an entry for C code between any two frames.
    for _ in 0..2 * PYTHON_FRAMES {
        if reader.next == 0 || reader.add_frame().is_none() {
            break;
        }
    }
    let called = WirePythonCalled {
        bytes: reader.data.len() as u32,
        is_truncated: u32::from(reader.next != 0),
        ..WirePythonCalled::new_zeroed()
    };
    (reader.frames > 0).then(|| chains::python::chain(&called, &reader.data))?
}

fn at(object: u64, offset: u16) -> u64 {
    object.wrapping_add(offset.into())
}

/// Returns the bias that must be added to addresses in the file that contains the interpreter. A program linked with libpython keeps the
/// address of one of its functions in a GOT slot, which is filled no later than at the first call.
fn interpreter_bias(memory: &mut Memory, layout: &WirePython, program_bias: u64) -> Option<u64> {
    if layout.slot == 0 {
        return Some(program_bias);
    }
    let function = memory.pointer(layout.slot.wrapping_add(program_bias))?;
    let bias = function.wrapping_sub(layout.slot_function);
    (function != 0 && bias & 0xfff == 0).then_some(bias)
}

/// Returns the address of a thread's PyThreadState; `None` if it is not found, or if the process has several interpreters, because a
/// thread may then be in several lists.
fn thread_state(memory: &mut Memory, layout: &WirePython, bias: u64, thread: Pid, is_nested: bool) -> Option<u64> {
    let by_tid = layout.line_format == PYTHON_LINES_LOCATIONS;
    let wanted = if !by_tid {
        Registers::thread_pointer(thread)?
    } else if is_nested {
        procfs::innermost_id(thread)?.0 as u64
    } else {
        thread.0 as u64
    };
    let runtime = layout.runtime.wrapping_add(bias);
    let interpreter = memory.pointer(at(runtime, layout.runtime_interpreters)).filter(|first| *first != 0)?;
    if memory.pointer(at(interpreter, layout.interpreter_next))? != 0 {
        return None;
    }
    let mut state = memory.pointer(at(interpreter, layout.interpreter_threads))?;
    for _ in 0..PYTHON_THREADS {
        if state == 0 {
            return None;
        }
        let id = memory.pointer(at(state, layout.thread_id))?;
        let is_wanted = if by_tid { id == wanted } else { Registers::is_pthread(id, wanted) };
        if is_wanted {
            return Some(state);
        }
        state = memory.pointer(at(state, layout.thread_next))?;
    }
    None
}

impl Reader<'_> {
    /// Adds one frame and moves to its caller. Returns `None` if the frame cannot be read, or if there are PYTHON_FRAMES already.
    fn add_frame(&mut self) -> Option<()> {
        let layout = self.layout;
        let owner = match layout.frame_owner {
            0 => 0,
            offset => self.memory.byte(at(self.next, offset))?,
        };
        if owner > OWNED_BY_C_STACK {
            return None;
        }
        if owner < OWNED_BY_INTERPRETER {
            // The lowest bits are flags for reference counting (3.14).
            let code = self.memory.pointer(at(self.next, layout.frame_code))? & !7;
            if self.frames == PYTHON_FRAMES {
                return None;
            }
            self.add_code(code)?;
            self.frames += 1;
        }
        self.next = self.memory.pointer(at(self.next, layout.frame_caller))?;
        Some(())
    }

    fn add_code(&mut self, code: u64) -> Option<()> {
        let layout = self.layout;
        let start = self.data.len().next_multiple_of(8);
        if start > PYTHON_DATA_BYTES as usize || self.memory.pointer(code.wrapping_add(OBJECT_TYPE))? != self.code_type
        {
            return None;
        }
        let first_line = self.memory.number(at(code, layout.code_first_line))?;
        let code_offset = self.code_offset(code).unwrap_or(UNKNOWN_COUNT);
        let file = self.memory.pointer(at(code, layout.code_file))?;
        let name = self.memory.pointer(at(code, layout.code_function))?;
        let (file, file_width) = self.text(file, PYTHON_FILE_BYTES).unwrap_or_default();
        let (function, function_width) = self.text(name, PYTHON_FUNCTION_BYTES).unwrap_or_default();
        let table = self.table(code);
        let frame = WirePythonFrame {
            first_line,
            code_offset: if table.is_some() { code_offset } else { UNKNOWN_COUNT },
            file_bytes: file.len() as u32,
            file_width,
            function_bytes: function.len() as u32,
            function_width,
            table_bytes: table.as_ref().map_or(0, Vec::len) as u32,
            line_format: layout.line_format.into(),
        };
        self.data.resize(start, 0);
        self.data.extend_from_slice(frame.as_bytes());
        for part in [file, function, table.unwrap_or_default()] {
            self.data.extend(part);
        }
        Some(())
    }

    /// Returns the offset of the frame's current instruction in its code, in bytes; `None` if it is not within the code. Up to 3.10, the
    /// frame stores the offset itself: in 3.9 in bytes, in 3.10 in instructions.
    fn code_offset(&mut self, code: u64) -> Option<u32> {
        let layout = self.layout;
        let instruction = at(self.next, layout.frame_instruction);
        let (offset, bytes) = if layout.line_format == PYTHON_LINES_LOCATIONS {
            let offset = self.memory.pointer(instruction)?.wrapping_sub(at(code, layout.code_instructions));
            (offset, self.memory.pointer(code.wrapping_add(OBJECT_SIZE))?.wrapping_mul(2))
        } else {
            let unit = if layout.line_format == PYTHON_LINES_RANGES { 2 } else { 1 };
            let instructions = self.memory.pointer(at(code, layout.code_bytes))?;
            let bytes = self.memory.pointer(instructions.wrapping_add(OBJECT_SIZE))?;
            (u64::from(self.memory.number(instruction)?) * unit, bytes)
        };
        u32::try_from(offset).ok().filter(|_| offset < bytes)
    }

    /// Returns the characters of a string, and the size of a character in bytes; `None` if the string is inconsistent or too long.
    fn text(&mut self, object: u64, max_bytes: u32) -> Option<(Vec<u8>, u32)> {
        let length = self.memory.pointer(object.wrapping_add(OBJECT_SIZE))?;
        let state = self.memory.number(object.wrapping_add(32))?;
        let width = state >> 2 & 7;
        let bytes = length.checked_mul(width.into()).filter(|bytes| *bytes <= max_bytes.into())?;
        let is_ascii = state & TEXT_ASCII != 0;
        let start = if is_ascii { self.layout.ascii_text } else { self.layout.other_text };
        if state & TEXT_COMPACT == 0 || length > max_bytes.into() {
            return None;
        }
        Some((self.memory.bytes(at(object, start), bytes as usize)?, width))
    }

    /// Returns the line table, truncated to PYTHON_TABLE_BYTES.
    fn table(&mut self, code: u64) -> Option<Vec<u8>> {
        let table = self.memory.pointer(at(code, self.layout.code_lines))?;
        let bytes = self.memory.pointer(table.wrapping_add(OBJECT_SIZE))?;
        self.memory.bytes(table.wrapping_add(BYTES_DATA), bytes.min(PYTHON_TABLE_BYTES.into()) as usize)
    }
}
