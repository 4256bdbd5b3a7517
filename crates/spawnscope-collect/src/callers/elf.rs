//! Reads the ELF file of an executable or library: symbols, segments, and the variables that the
//! code refers to.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;

use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, DynamicTag, FileHeader64, PF_X, PT_LOAD};
use object::read::elf::{ElfFile, ElfSymbol, FileHeader as _, ProgramHeader as _, Sym as _};
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _, ObjectSymbolTable as _,
    ReadCache, RelocationTarget,
};

use super::code;

/// A symbol: its virtual address in the file, and its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) address: u64,
    pub(super) bytes: u64,
}

type DynamicSymbol<'data, 'file> = ElfSymbol<'data, 'file, FileHeader64<Endianness>, &'data ReadCache<&'data File>>;

pub(super) struct Elf<'data>(ElfFile<'data, FileHeader64<Endianness>, &'data ReadCache<&'data File>>);

impl<'data> Elf<'data> {
    /// Parses a file; returns `None` if it is not a valid 64-bit ELF file.
    pub(super) fn parse(data: &'data ReadCache<&'data File>) -> Option<Elf<'data>> {
        ElfFile::parse(data).ok().map(Elf)
    }

    pub(super) fn entry_point(&self) -> u64 {
        self.0.entry()
    }

    pub(super) fn exports(&self, wanted: &[&'static str]) -> HashMap<&'static str, Symbol> {
        let names = self.names();
        let exported = self.0.dynamic_symbols().filter(|symbol| symbol.is_definition());
        let found = exported.filter_map(|symbol| {
            let name = self.symbol_name(names, &symbol)?;
            let name = wanted.iter().find(|wanted| wanted.as_bytes() == name)?;
            let symbol = Symbol { address: symbol.address(), bytes: symbol.size() };
            Some((*name, symbol))
        });
        found.collect()
    }

    /// Whether the file imports a symbol.
    pub(super) fn imports(&self, wanted: &str) -> bool {
        let names = self.names();
        let mut imported = self.0.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        imported.any(|symbol| self.symbol_name(names, &symbol) == Some(wanted.as_bytes()))
    }

    /// Returns the string table of the dynamic symbols. It is read at once, because bash has
    /// thousands of names.
    fn names(&self) -> &'data [u8] {
        let section = self.0.section_by_name(".dynstr");
        section.and_then(|names| names.data().ok()).unwrap_or_default()
    }

    fn symbol_name(&self, names: &'data [u8], symbol: &DynamicSymbol<'data, '_>) -> Option<&'data [u8]> {
        let from = names.get(symbol.elf_symbol().st_name(self.0.endian()) as usize..)?;
        from.split(|byte| *byte == 0).next()
    }

    /// Returns the start of the first executable segment. The kernel keeps its run-time address in
    /// `mm->start_code`.
    pub(super) fn code_start(&self) -> Option<u64> {
        let endian = self.0.endian();
        let code = self.0.elf_program_headers().iter();
        code.filter(|header| header.p_type(endian) == PT_LOAD && header.p_flags(endian).0 & PF_X.0 != 0)
            .map(|header| header.p_vaddr(endian))
            .min()
    }

    /// Returns the address of the slot that the loader fills with the address of a library
    /// function.
    pub(super) fn got_slot(&self, function: &str) -> Option<u64> {
        let (symbols, names) = (self.0.dynamic_symbol_table()?, self.names());
        self.0.dynamic_relocations()?.find_map(|(slot, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            let name = self.symbol_name(names, &symbols.symbol_by_index(index).ok()?)?;
            (name == function.as_bytes()).then_some(slot)
        })
    }

    /// Returns the names of the libraries that the file is linked with.
    pub(super) fn libraries(&self) -> Vec<&'data [u8]> {
        self.dynamic_strings(&[DT_NEEDED])
    }

    /// Returns the directories that the loader searches first for this file (RUNPATH, RPATH).
    pub(super) fn library_directories(&self) -> Vec<&'data [u8]> {
        let paths = self.dynamic_strings(&[DT_RUNPATH, DT_RPATH]);
        paths.into_iter().flat_map(|path| path.split(|&byte| byte == b':')).collect()
    }

    /// Returns the strings with these tags in the dynamic section.
    fn dynamic_strings(&self, tags: &[DynamicTag]) -> Vec<&'data [u8]> {
        let Ok(table) = self.0.elf_dynamic_table() else { return Vec::new() };
        let entries = table.iter().filter(|entry| tags.contains(&entry.tag));
        entries.filter_map(|entry| table.string(entry).ok()).collect()
    }

    /// Returns the content of a symbol in the file.
    pub(super) fn bytes(&self, symbol: Symbol) -> Option<&'data [u8]> {
        let mut segments = self.0.segments();
        let found = segments.find_map(|segment| segment.data_range(symbol.address, symbol.bytes).ok()?);
        found.filter(|bytes| bytes.len() as u64 == symbol.bytes)
    }

    /// Returns the build id, which is different for each build.
    pub(super) fn build_id(&self) -> Option<&'data [u8]> {
        self.0.build_id().ok()?
    }

    /// Returns the read-only data, unless it is larger than `max_bytes`.
    pub(super) fn read_only_data(&self, max_bytes: u64) -> Option<&'data [u8]> {
        let section = self.0.section_by_name_bytes(b".rodata")?;
        (section.size() <= max_bytes).then(|| section.data().ok())?
    }

    /// Returns the address ranges of the initialized variables and of the zero-initialized ones.
    pub(super) fn variables(&self) -> [Range<u64>; 2] {
        [&b".data"[..], b".bss"].map(|name| {
            let section = self.0.section_by_name_bytes(name);
            section.map_or(0..0, |section| section.address()..section.address() + section.size())
        })
    }

    /// Returns the address of the only eight-byte variable that a short function loads or compares
    /// with PC-relative addressing; `None` if there is no such variable, or more than one.
    pub(super) fn variable_read_by(&self, function: Symbol) -> Option<u64> {
        let machine = self.0.elf_header().e_machine(self.0.endian());
        let variables = self.variables();
        let mut targets = code::variables_read(machine, self.bytes(function)?, function.address);
        targets.retain(|target| variables.iter().any(|range| range.contains(target)));
        targets.sort_unstable();
        targets.dedup();
        <[u64; 1]>::try_from(targets).ok().map(|[target]| target)
    }
}
