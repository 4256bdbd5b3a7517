//! Opens the files whose code processes run, as those saw them, and makes sure that a file is the one that was mapped: a
//! file that was replaced gives no names rather than wrong ones.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ReadCache, elf};

use super::mappings::{FileId, Mapping};
use super::recent::Recent;
use super::symbols::Names;
use super::tables::Tables;
use crate::event::Pid;

/// Files kept open: well below the usual limit of 1024 descriptors.
const MOST_OPEN: usize = 200;

/// A number for each file that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModuleId(u32);

/// An open ELF file.
pub(super) struct Module {
    pub(super) id: ModuleId,
    /// As the process saw it that used it first.
    pub(super) path: Arc<[u8]>,
    pub(super) tables: Tables,
    pub(super) names: Names,
    segments: Vec<Segment>,
    /// `names` opens it too, through /proc/self/fd.
    file: File,
}

/// A part of the file that is loaded.
struct Segment {
    offset: u64,
    bytes: u64,
    address: u64,
}

impl Module {
    /// Where in the file's own numbering of addresses an offset in it lies.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        let within = |segment: &Segment| offset.checked_sub(segment.offset).filter(|place| *place < segment.bytes);
        let (segment, place) = self.segments.iter().find_map(|segment| Some((segment, within(segment)?)))?;
        segment.address.checked_add(place)
    }

    /// Whether a call ends at this offset in the file: the instruction E8 with 32 bits, or FF /2 with one of its operands.
    pub(super) fn is_behind_call(&self, offset: u64) -> bool {
        let mut before = [0; 7];
        let read = offset
            .checked_sub(7)
            .map(|start| self.file.read_exact_at(&mut before, start));
        let is_indirect = |length: &usize| {
            let place = before.len() - length;
            before[place] == 0xff && before[place + 1] >> 3 & 7 == 2
        };
        matches!(read, Some(Ok(()))) && (before[2] == 0xe8 || [2, 3, 4, 6, 7].iter().any(is_indirect))
    }

    fn new(id: ModuleId, path: Arc<[u8]>, file: File) -> Option<Module> {
        let cache = ReadCache::new(file.try_clone().ok()?);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian = elf.endian();
        let loaded = elf
            .elf_program_headers()
            .iter()
            .filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let segments = loaded.map(|header| Segment {
            offset: header.p_offset(endian),
            // Up to the end of its last page, which is mapped with it.
            bytes: header.p_filesz(endian).checked_next_multiple_of(4096).unwrap_or(0),
            address: header.p_vaddr(endian),
        });
        Some(Module {
            id,
            path,
            segments: segments.collect(),
            tables: Tables::read(&elf),
            names: Names::of(format!("/proc/self/fd/{}", file.as_raw_fd()).into(), elf.build_id().ok().flatten()),
            file,
        })
    }
}

/// The files in use.
pub(super) struct Modules {
    /// `None`: it could not be opened when it was last tried.
    known: Recent<FileId, Option<Rc<Module>>>,
    numbered: HashMap<ModuleId, Weak<Module>>,
    next: u32,
}

impl Default for Modules {
    fn default() -> Modules {
        Modules {
            known: Recent::new(MOST_OPEN / 2),
            numbered: HashMap::new(),
            next: 0,
        }
    }
}

impl Modules {
    /// The file of a mapping, opened now if need be.
    pub(super) fn of(&mut self, pid: Pid, mapping: &Mapping) -> Option<Rc<Module>> {
        let id = mapping.file.as_ref()?.id;
        match self.known.get(&id) {
            Some(known) => known.clone(),
            None => self.open(pid, mapping),
        }
    }

    /// Opens the file of a mapping unless it is open: while the process lives, it can be seen as the process sees it.
    pub(super) fn prepare(&mut self, pid: Pid, mapping: &Mapping) {
        let id = mapping.file.as_ref().map(|file| file.id);
        if id.is_some_and(|id| !matches!(self.known.get(&id), Some(Some(_)))) {
            self.open(pid, mapping);
        }
    }

    /// A file that `of` gave a moment ago.
    pub(super) fn numbered(&self, id: ModuleId) -> Option<Rc<Module>> {
        self.numbered.get(&id)?.upgrade()
    }

    fn open(&mut self, pid: Pid, mapping: &Mapping) -> Option<Rc<Module>> {
        let mapped = mapping.file.as_ref()?;
        let path = Path::new(OsStr::from_bytes(&mapped.path));
        let within = path.strip_prefix("/").unwrap_or(path);
        let places = [
            format!("/proc/{}/map_files/{:x}-{:x}", pid.0, mapping.start, mapping.end).into(),
            Path::new(&format!("/proc/{}/root", pid.0)).join(within),
            path.to_path_buf(),
        ];
        let file = places.iter().find_map(|place| open_if(place, &mapped.id));
        self.next = self.next.saturating_add(1);
        let module = file.and_then(|file| Module::new(ModuleId(self.next), Arc::clone(&mapped.path), file));
        let module = module.map(Rc::new);
        self.known.insert(mapped.id, module.clone());
        if let Some(module) = &module {
            self.numbered.retain(|_, module| module.strong_count() > 0);
            self.numbered.insert(module.id, Rc::downgrade(module));
        }
        module
    }
}

/// Opens what is at `place` for reading if it is the file that is meant. It is looked at before it is opened, since to open
/// a device or a pipe may do something.
fn open_if(place: &Path, id: &FileId) -> Option<File> {
    let handle = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(place)
        .ok()?;
    if !is_meant(&handle, id)? {
        return None;
    }
    File::open(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()
}

fn is_meant(handle: &File, id: &FileId) -> Option<bool> {
    let found = handle.metadata().ok()?;
    let modified = found.mtime() as u64 * 1_000_000_000 + found.mtime_nsec() as u64;
    let device = libc::major(found.dev()) << 20 | libc::minor(found.dev());
    let is_same = found.ino() == id.inode && id.modified.is_none_or(|told| told == modified);
    Some(found.is_file() && is_same && (device == id.device || has_devices_of_its_own(handle)?))
}

/// Overlays and btrfs show another device than that of the inode that is mapped.
fn has_devices_of_its_own(handle: &File) -> Option<bool> {
    let kind = nix::sys::statfs::fstatfs(handle).ok()?.filesystem_type();
    Some(matches!(
        kind,
        nix::sys::statfs::OVERLAYFS_SUPER_MAGIC | nix::sys::statfs::BTRFS_SUPER_MAGIC
    ))
}

/// How a process's pid namespace names the process.
pub(super) fn pid_in_its_namespace(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    pids.split_ascii_whitespace().next_back()?.parse().ok()
}
