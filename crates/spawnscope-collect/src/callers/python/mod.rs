//! Lines of Python programs. The BPF side (`ebpf/python.h`) reads the frames of a forking thread. This module provides what it must
//! know about an interpreter (`library`, `versions`), and decodes the tables and strings that it reports (`linetable`, `text`).
//! CPython 3.9 to 3.14, with a global interpreter lock.

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

/// The function that every version's program calls if its interpreter is in a library, and that few other programs call.
const MAIN: &str = "Py_BytesMain";
/// The symbol with the version since 3.11, and functions that were added in 3.10 and 3.9.
const VERSION: &str = "Py_Version";
const SINCE_3_10: &str = "PyIter_Send";
const SINCE_3_9: &str = "PyInterpreterState_Get";

/// Where the interpreter of a program stores its frames. `file` is the program's, `process` is one that runs it. `None` if it is
/// not a Python, or not one whose frames can be read.
pub(super) fn layout(program: &Elf<'_>, file: &File, process: Option<Pid>) -> Option<WirePython> {
    let layout = interpreter(program).or_else(|| linked(program, file, process))?;
    Some(WirePython {
        code_start: program.code_start()?,
        ..layout
    })
}

/// The line of the instruction at `code_offset`, in bytes, from a line table in the format of its version. `None` if it has no
/// line, or if the table was truncated before it.
pub(crate) fn line(format: u32, table: &[u8], first_line: u32, code_offset: u32) -> Option<u32> {
    let line = match u16::try_from(format).ok()? {
        PYTHON_LINES_LOCATIONS => linetable::line,
        PYTHON_LINES_RANGES => old_linetable::line_by_ranges,
        PYTHON_LINES_STEPS => old_linetable::line_by_steps,
        _ => return None,
    };
    line(table, first_line, code_offset)
}

/// The layout of the interpreter in this file.
fn interpreter(file: &Elf<'_>) -> Option<WirePython> {
    let symbols = file.exports(&["_PyRuntime", "PyCode_Type", VERSION, SINCE_3_9, SINCE_3_10]);
    let symbol = |name: &str| symbols.get(name).copied();
    let (runtime, code_type) = (symbol("_PyRuntime")?, symbol("PyCode_Type")?);
    let version = match symbol(VERSION) {
        Some(version) => u32::from_le_bytes(*file.bytes(version)?.first_chunk()?),
        None if symbol(SINCE_3_10).is_some() => 0x30a_0000,
        None if symbol(SINCE_3_9).is_some() => 0x309_0000,
        None => return None,
    };
    let published = file.bytes(Symbol {
        bytes: versions::PUBLISHED_BYTES,
        ..runtime
    });
    Some(WirePython {
        runtime: runtime.address,
        code_type: code_type.address,
        ..versions::offsets(version, published.unwrap_or_default())?
    })
}

/// The layout of a program whose interpreter is in a library.
fn linked(program: &Elf<'_>, file: &File, process: Option<Pid>) -> Option<WirePython> {
    let slot = program.slot_of(MAIN)?;
    let libraries = program.libraries();
    let name = libraries.iter().find(|name| name.starts_with(b"libpython3."))?;
    let file = library::open(name, &program.library_directories(), file, process)?;
    let cache = ReadCache::new(&file);
    let library = Elf::parse(&cache)?;
    let function = *library.exports(&[MAIN]).get(MAIN)?;
    Some(WirePython {
        slot,
        slot_function: function.address,
        ..interpreter(&library)?
    })
}

#[cfg(test)]
mod tests;
