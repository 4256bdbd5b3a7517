//! Caches the ELF files in use, with the parts of them that a stack walk needs.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ReadCache, elf};

use super::bounded::{BoundedFile, MAX_BYTES};
use super::files;
use super::mappings::{FileId, Mapping};
use super::processor::{CALL_BYTES, ends_with_call};
use super::recent::RecentMap;
use super::symbols::Names;
use super::tables::Tables;
use spawnscope_data::event::Pid;

/// Maximum number of files that are kept open: well below the usual limit of 1024 descriptors.
const MAX_OPEN_FILES: usize = 200;

/// Identifies an open ELF file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModuleId(u32);

/// An open ELF file.
pub(super) struct Module {
    pub(super) id: ModuleId,
    /// The path as seen by the first process that used the file.
    pub(super) path: Arc<[u8]>,
    pub(super) tables: Tables,
    pub(super) names: Names,
    segments: Vec<Segment>,
    /// The file, which `names` also opens through /proc/self/fd.
    file: File,
}

/// A part of the file that is loaded: its file offset, its size, and its virtual address.
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

impl Module {
    pub(super) fn virtual_address(&self, offset: u64) -> Option<u64> {
        let mut segments = self.segments.iter();
        let segment =
            segments.find(|segment| offset.checked_sub(segment.offset).is_some_and(|at| at < segment.bytes))?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// Whether a call instruction ends at this file offset.
    pub(super) fn follows_call(&self, offset: u64) -> bool {
        let mut before = [0; CALL_BYTES];
        let read = offset.checked_sub(CALL_BYTES as u64).map(|start| self.file.read_exact_at(&mut before, start));
        matches!(read, Some(Ok(()))) && ends_with_call(&before)
    }

    fn new(id: ModuleId, path: Arc<[u8]>, file: File) -> Option<Module> {
        let cache = ReadCache::new(file.try_clone().ok()?);
        let left = Cell::new(MAX_BYTES);
        let elf = ElfFile64::<Endianness, _>::parse(BoundedFile::new(&cache, &left)).ok()?;
        let endian = elf.endian();
        let loaded = elf.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let page = rustix::param::page_size() as u64;
        let segments = loaded.map(|header| Segment {
            offset: header.p_offset(endian),
            // The segment is mapped up to the end of its last page.
            bytes: header.p_filesz(endian).checked_next_multiple_of(page).unwrap_or(0),
            address: header.p_vaddr(endian),
        });
        Some(Module {
            id,
            path,
            segments: segments.collect(),
            tables: Tables::read(&elf),
            names: Names::new(format!("/proc/self/fd/{}", file.as_raw_fd()).into(), elf.build_id().ok().flatten()),
            file,
        })
    }
}

enum FileState {
    /// The file is open, but has not been examined.
    Opened(File),
    Used(Rc<Module>),
    /// The file could not be opened at the last attempt, or is not an ELF file.
    Unusable,
}

/// The files in use.
pub(super) struct Modules {
    files: RecentMap<FileId, FileState>,
    modules: HashMap<ModuleId, Weak<Module>>,
    last_id: u32,
}

impl Default for Modules {
    fn default() -> Modules {
        Modules { files: RecentMap::new(MAX_OPEN_FILES / 2), modules: HashMap::new(), last_id: 0 }
    }
}

impl Modules {
    /// Stores a file that was opened for a mapping.
    pub(super) fn add(&mut self, id: FileId, file: File) {
        if !matches!(self.files.get(&id), Some(FileState::Used(_))) {
            self.files.insert(id, FileState::Opened(file));
        }
    }

    pub(super) fn get_or_open(&mut self, pid: Pid, mapping: &Mapping) -> Option<Rc<Module>> {
        // Without the modification time, the known file may be an earlier one with the same inode
        // number.
        let mapped = mapping.file.as_ref().filter(|file| file.id.modified.is_some())?;
        let file = match self.files.get(&mapped.id) {
            Some(FileState::Used(module)) => return Some(Rc::clone(module)),
            Some(FileState::Unusable) => return None,
            Some(FileState::Opened(file)) => file.try_clone().ok(),
            None => files::open(pid, mapping),
        };
        self.last_id = self.last_id.saturating_add(1);
        let id = ModuleId(self.last_id);
        let module = file.and_then(|file| Module::new(id, Arc::clone(&mapped.path), file));
        let Some(module) = module.map(Rc::new) else {
            self.files.insert(mapped.id, FileState::Unusable);
            return None;
        };
        self.files.insert(mapped.id, FileState::Used(Rc::clone(&module)));
        self.modules.retain(|_, module| module.strong_count() > 0);
        self.modules.insert(id, Rc::downgrade(&module));
        Some(module)
    }

    /// Returns a module that `get_or_open` returned recently.
    pub(super) fn get(&self, id: ModuleId) -> Option<Rc<Module>> {
        self.modules.get(&id)?.upgrade()
    }
}

#[cfg(test)]
mod tests {
    use super::super::mappings::{self, Image, stack_of_program};
    use super::*;

    /// Creates an ELF file with one section of `bytes` bytes, which begins with `data` and
    /// continues with a hole.
    fn elf_file(name: &str, flags: u64, bytes: u64, data: &[u8]) -> File {
        const HEADER: u64 = 64;
        let names = [b"\0", name.as_bytes(), b"\0.shstrtab\0"].concat();
        let names_at = HEADER * 4;
        let data_at = 4096u64;
        let mut head = [b"\x7fELF\x02\x01\x01".as_slice(), &[0; 9]].concat();
        head.extend([3u16, 62].iter().flat_map(|half| half.to_le_bytes()));
        head.extend(1u32.to_le_bytes());
        head.extend([0, 0, HEADER].iter().flat_map(|word| word.to_le_bytes()));
        head.extend(0u32.to_le_bytes());
        head.extend([64u16, 56, 0, 64, 3, 2].iter().flat_map(|half| half.to_le_bytes()));
        head.extend([0; HEADER as usize]);
        let strings = (1 + name.len() as u32 + 1, 3u32, 0, names_at, names.len() as u64);
        for (name, kind, flags, at, size) in [(1, 1, flags, data_at, bytes), strings] {
            head.extend([name, kind].iter().flat_map(|half| half.to_le_bytes()));
            head.extend([flags, 0, at, size, 0, 1, 0].iter().flat_map(|word| word.to_le_bytes()));
        }
        head.extend(names);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&head, 0).unwrap();
        file.write_all_at(data, data_at).unwrap();
        file.set_len(data_at + bytes).unwrap();
        file
    }

    #[test]
    fn a_file_without_a_modification_time_is_not_used() {
        let own = Pid(std::process::id().cast_signed());
        let image = Image::with_mappings(mappings::read(own, stack_of_program(own).unwrap()).unwrap());
        let mut mapping = Mapping::clone(image.find(stack_of_program as *const () as u64).unwrap());
        let mut modules = Modules::default();
        assert!(modules.get_or_open(own, &mapping).is_some());
        mapping.file.as_mut().unwrap().id.modified = None;
        assert!(modules.get_or_open(own, &mapping).is_none());
    }

    fn has_debug_frame(file: File) -> bool {
        let module = Module::new(ModuleId(0), b"x".as_slice().into(), file).unwrap();
        module.tables.has_debug_frame()
    }

    #[test]
    fn a_section_is_read_unless_it_claims_to_be_huge() {
        assert!(has_debug_frame(elf_file(".debug_frame", 0, 1 << 20, b"")));
        assert!(!has_debug_frame(elf_file(".debug_frame", 0, MAX_BYTES + 1, b"")));
    }

    /// Returns a compressed section: a zstd frame (RFC 8878) with a window of 128 KiB, whose blocks
    /// repeat a single byte.
    fn compressed(blocks: u32) -> Vec<u8> {
        const BLOCK: u32 = 128 << 10;
        let bytes = u64::from(blocks) * u64::from(BLOCK);
        let head = [u64::from(elf::ELFCOMPRESS_ZSTD.0), bytes, 1].map(u64::to_le_bytes).concat();
        let mut section = [head.as_slice(), &[0x28, 0xb5, 0x2f, 0xfd, 0, 0x38]].concat();
        for number in 0..blocks {
            let is_last = u32::from(number + 1 == blocks);
            section.extend(&(is_last | 1 << 1 | BLOCK << 3).to_le_bytes()[..3]);
            section.push(0);
        }
        section
    }

    #[test]
    fn a_section_is_decompressed_unless_it_would_become_huge() {
        for (blocks, is_read) in [(8, true), ((MAX_BYTES >> 17) as u32 + 1, false)] {
            let data = compressed(blocks);
            let file = elf_file(".debug_frame", elf::SHF_COMPRESSED.0, data.len() as u64, &data);
            assert_eq!(has_debug_frame(file), is_read);
        }
    }
}
