//! What the ELF files of a Python program and of its library say: where the interpreter is, and which version it is.

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSegment as _, ObjectSymbol as _, ObjectSymbolTable as _, ReadRef, RelocationTarget};

use super::versions;
use crate::collect::ebpf::wire::WirePython;

/// A 64-bit ELF file.
pub(super) struct Elf<'data, R: ReadRef<'data>>(ElfFile<'data, FileHeader64<Endianness>, R>);

/// How a program gets at an interpreter that is a library: the slot that the loader fills, and with which function.
pub(super) struct Link {
    slot: u64,
    function: Vec<u8>,
}

impl<'data, R: ReadRef<'data>> Elf<'data, R> {
    /// `None`: it is none, or not a sound one.
    pub(super) fn parse(data: R) -> Option<Elf<'data, R>> {
        ElfFile::parse(data).ok().map(Elf)
    }

    /// The layout of an interpreter in this file, still without what is the program's.
    pub(super) fn interpreter(&self) -> Option<WirePython> {
        let [mut runtime, mut code_type, mut version] = [None; 3];
        for symbol in self.0.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
            let place = match symbol.name_bytes().ok()? {
                b"_PyRuntime" => &mut runtime,
                b"PyCode_Type" => &mut code_type,
                b"Py_Version" => &mut version,
                _ => continue,
            };
            *place = Some(symbol.address());
        }
        let (runtime, code_type) = (runtime?, code_type?);
        let version = self.bytes(version?, 4)?.first_chunk().copied().map(u32::from_le_bytes)?;
        let offsets = versions::offsets(version, self.bytes(runtime, versions::OFFSETS_BYTES).unwrap_or_default())?;
        Some(WirePython {
            runtime,
            code_type,
            ..offsets
        })
    }

    /// How this program is linked with an interpreter in a library.
    pub(super) fn link(&self) -> Option<Link> {
        let symbols = self.0.dynamic_symbol_table()?;
        self.0.dynamic_relocations()?.find_map(|(slot, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                return None;
            };
            let function = symbols.symbol_by_index(index).ok()?.name_bytes().ok()?;
            // What the program of every version calls, and little else does.
            (function == b"Py_BytesMain").then(|| Link {
                slot,
                function: function.to_vec(),
            })
        })
    }

    /// The layout of this program, whose interpreter is in `library`.
    pub(super) fn linked<'other, S: ReadRef<'other>>(&self, link: &Link, library: &Elf<'other, S>) -> Option<WirePython> {
        let function = library.0.dynamic_symbols().find(|symbol| {
            symbol.is_definition() && symbol.name_bytes().is_ok_and(|name| name == link.function)
        })?;
        Some(WirePython {
            slot: link.slot,
            slot_function: function.address(),
            ..self.owning(library.interpreter()?)?
        })
    }

    /// A layout with what is the program's, which this file is.
    pub(super) fn owning(&self, interpreter: WirePython) -> Option<WirePython> {
        let code = self.0.elf_program_headers().iter().filter(|header| {
            header.p_type(self.0.endian()) == PT_LOAD && (header.p_flags(self.0.endian()) & PF_X).0 != 0
        });
        let code_start = code.map(|header| header.p_vaddr(self.0.endian())).min()?;
        Some(WirePython {
            code_start,
            ..interpreter
        })
    }

    /// Names of the libraries that it needs, and the directories in which it wants them searched.
    pub(super) fn needs(&self) -> (Vec<&'data [u8]>, Vec<&'data [u8]>) {
        let Ok(table) = self.0.elf_dynamic_table() else {
            return (Vec::new(), Vec::new());
        };
        let strings = |tags: &[_]| {
            let entries = table.iter().filter(|entry| tags.contains(&entry.tag));
            entries.filter_map(|entry| table.string(entry).ok()).collect::<Vec<_>>()
        };
        let paths = strings(&[DT_RUNPATH, DT_RPATH]);
        let directories = paths.into_iter().flat_map(|path| path.split(|&byte| byte == b':'));
        (strings(&[DT_NEEDED]), directories.collect())
    }

    /// What the file holds for these addresses.
    fn bytes(&self, address: u64, count: u64) -> Option<&'data [u8]> {
        let found = self.0.segments().find_map(|segment| segment.data_range(address, count).ok()?);
        found.filter(|bytes| bytes.len() as u64 == count)
    }
}
