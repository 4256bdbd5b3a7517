//! Lines of Python programs. The BPF side (`ebpf/python.h`) reads the frames of a thread that forks; here is what it has to
//! know of an interpreter for that (`elf`, `library`, `versions`), and what the tables and strings mean that it tells
//! (`linetable`, `text`). CPython 3.11 to 3.14, with a global lock.

mod elf;
mod library;
pub(in crate::collect) mod linetable;
pub(in crate::collect) mod text;
mod versions;

use std::fs::File;

use object::ReadCache;

use self::elf::Elf;
pub(in crate::collect) use self::library::Program;
use crate::collect::ebpf::wire::WirePython;

/// Where the interpreter of a program keeps its frames; `file` is the program's. `None`: it is no Python, or not one whose
/// frames can be read.
pub(in crate::collect) fn layout(file: &File, program: &Program<'_>) -> Option<WirePython> {
    let cache = ReadCache::new(file);
    let executable = Elf::parse(&cache)?;
    if let Some(interpreter) = executable.interpreter() {
        return executable.owning(interpreter);
    }
    let link = executable.link()?;
    let (libraries, directories) = executable.needs();
    let name = libraries.into_iter().find(|name| name.starts_with(b"libpython3."))?;
    let library = ReadCache::new(library::open(name, &directories, program)?);
    executable.linked(&link, &Elf::parse(&library)?)
}

#[cfg(test)]
mod tests;
