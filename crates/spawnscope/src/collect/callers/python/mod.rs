//! Lines of Python programs. The BPF side (`ebpf/python.h`) reads the frames of a thread that forks; here is what it has to
//! know of an interpreter for that (`library`, `versions`), and what the tables and strings mean that it tells (`linetable`,
//! `text`). CPython 3.11 to 3.14, with a global lock.

mod library;
pub(in crate::collect) mod linetable;
pub(in crate::collect) mod text;
mod versions;

use std::fs::File;

use object::ReadCache;

use super::elf::{Elf, Symbol};
use crate::collect::ebpf::wire::WirePython;
use crate::event::Pid;

/// What the program of every version calls when its interpreter is in a library, and little else does.
const MAIN: &str = "Py_BytesMain";

/// Where the interpreter of a program keeps its frames; `file` is the program's, `process` one that runs it. `None`: it is
/// no Python, or not one whose frames can be read.
pub(super) fn layout(program: &Elf<'_>, file: &File, process: Option<Pid>) -> Option<WirePython> {
    let layout = interpreter(program).or_else(|| linked(program, file, process))?;
    Some(WirePython {
        code_start: program.code_start()?,
        ..layout
    })
}

/// The layout of the interpreter in this file.
fn interpreter(file: &Elf<'_>) -> Option<WirePython> {
    let symbols = file.exports(&["_PyRuntime", "PyCode_Type", "Py_Version"]);
    let symbol = |name: &str| symbols.get(name).copied();
    let (runtime, code_type) = (symbol("_PyRuntime")?, symbol("PyCode_Type")?);
    let version = file.bytes(symbol("Py_Version")?)?.first_chunk()?;
    let published = file.bytes(Symbol {
        bytes: versions::PUBLISHED_BYTES,
        ..runtime
    });
    Some(WirePython {
        runtime: runtime.address,
        code_type: code_type.address,
        ..versions::offsets(u32::from_le_bytes(*version), published.unwrap_or_default())?
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
