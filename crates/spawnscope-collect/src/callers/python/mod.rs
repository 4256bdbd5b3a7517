//! Lines of Python programs, for CPython 3.9 to 3.14 with a global interpreter lock.
//! `ebpf/python.h` reads the frames of a forking thread. This module determines the layout of an
//! interpreter (`library`, `versions`), and decodes the tables and strings that were read
//! (`linetable`, `text`).

mod library;
mod linetable;
mod old_linetable;
pub(crate) mod text;
mod versions;

use std::fs::File;

use object::ReadCache;

use super::elf::{Elf, Symbol};
use crate::wire::{PYTHON_LINES_LOCATIONS, PYTHON_LINES_RANGES, PYTHON_LINES_STEPS, WirePython};
use spawnscope_data::event::Pid;

/// The library function that the Python program of every version calls if its interpreter is in a
/// library. Few other programs call it.
const MAIN: &str = "Py_BytesMain";
/// The variable with the version; exists since 3.11.
const VERSION: &str = "Py_Version";
/// A function that was added in 3.10.
const SINCE_3_10: &str = "PyIter_Send";
/// A function that was added in 3.9.
const SINCE_3_9: &str = "PyInterpreterState_Get";

/// Returns where the interpreter of a program stores its frames; `None` if the program is not a
/// Python, or not one whose frames can be read. `file` is the program's file, `process` a process
/// that runs it.
pub(super) fn layout(program: &Elf<'_>, file: &File, process: Option<Pid>) -> Option<WirePython> {
    let layout = interpreter_in(program).or_else(|| linked_interpreter(program, file, process))?;
    Some(WirePython { code_start: program.code_start()?, ..layout })
}

/// Returns the line of the instruction at `code_offset`, in bytes, from a line table in this
/// format; `None` if it has no line, or if the table was truncated before it.
pub(crate) fn line(format: u32, table: &[u8], first_line: u32, code_offset: u32) -> Option<u32> {
    let line = match u16::try_from(format).ok()? {
        PYTHON_LINES_LOCATIONS => linetable::line,
        PYTHON_LINES_RANGES => old_linetable::line_by_ranges,
        PYTHON_LINES_STEPS => old_linetable::line_by_steps,
        _ => return None,
    };
    line(table, first_line, code_offset)
}

/// Returns the layout of the interpreter that this file contains.
fn interpreter_in(file: &Elf<'_>) -> Option<WirePython> {
    let symbols = file.exports(&["_PyRuntime", "PyCode_Type", VERSION, SINCE_3_9, SINCE_3_10]);
    let (runtime, code_type) = (symbols.get("_PyRuntime")?, symbols.get("PyCode_Type")?);
    let version = match symbols.get(VERSION) {
        Some(version) => u32::from_le_bytes(*file.bytes(*version)?.first_chunk()?),
        None if symbols.contains_key(SINCE_3_10) => 0x30a_0000,
        None if symbols.contains_key(SINCE_3_9) => 0x309_0000,
        None => return None,
    };
    let published = file.bytes(Symbol { bytes: versions::PUBLISHED_BYTES, ..*runtime });
    Some(WirePython {
        runtime: runtime.address,
        code_type: code_type.address,
        ..versions::offsets(version, published.unwrap_or_default())?
    })
}

/// Returns the layout of the interpreter in the library that a program is linked with.
fn linked_interpreter(program: &Elf<'_>, file: &File, process: Option<Pid>) -> Option<WirePython> {
    let libraries = program.libraries();
    let name = libraries.iter().find(|name| name.starts_with(b"libpython3."))?;
    // Reads all relocations, which are tens of MB in some programs, but not in a Python.
    let slot = program.got_slot(MAIN)?;
    let file = library::open(name, &program.library_directories(), file, process)?;
    let cache = ReadCache::new(&file);
    let library = Elf::parse(&cache)?;
    let function = *library.exports(&[MAIN]).get(MAIN)?;
    Some(WirePython { slot, slot_function: function.address, ..interpreter_in(&library)? })
}

#[cfg(test)]
mod tests;
