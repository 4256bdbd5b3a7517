//! Determines the name under which `ldconfig` would enter a library in the cache: its SONAME, or else its file name.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use object::elf::{DT_NULL, DT_SONAME, DT_STRTAB, DynamicTag, ET_DYN, FileHeader32, FileHeader64, PT_DYNAMIC, PT_LOAD};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef};
use spawnscope_system::files::{Links, open_regular};

/// The maximum size of a file's dynamic section. An untrusted file may claim any size.
const MAX_DYNAMIC_SECTION_BYTES: u64 = 1 << 16;
/// The maximum length of a name.
const MAX_NAME_BYTES: u64 = 4096;

/// Returns the name under which `ldconfig` would enter a file; `None` if the file is not a library, or is for other processors.
pub(super) fn entry_name(path: &Path) -> Option<Vec<u8>> {
    let file = open_regular(path, Links::Followed).ok()?;
    let cache = ReadCache::new(file);
    let soname = match FileKind::parse(&cache).ok()? {
        FileKind::Elf64 => soname::<FileHeader64<Endianness>>(&cache),
        FileKind::Elf32 => soname::<FileHeader32<Endianness>>(&cache),
        _ => None,
    }?;
    soname.or_else(|| Some(path.file_name().map(OsStr::as_bytes)?.to_owned()))
}

/// Returns the SONAME, or `Some(None)` if the library has none; `None` if the file is not a library for this machine.
#[expect(clippy::option_option, reason = "a library without a name differs from a file that is not a library")]
fn soname<Elf: FileHeader<Endian = Endianness>>(data: &ReadCache<File>) -> Option<Option<Vec<u8>>> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    if header.e_type(endian) != ET_DYN || !is_for_this_machine(header.e_machine(endian).0) {
        return None;
    }
    let segments = header.program_headers(endian, data).ok()?;
    let dynamic = segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC)?;
    if dynamic.p_filesz(endian).into() > MAX_DYNAMIC_SECTION_BYTES {
        return None;
    }
    let entries = dynamic.dynamic(endian, data).ok()??;
    let value = |wanted: DynamicTag| {
        let mut entries = entries.iter().take_while(|entry| entry.tag(endian) != DT_NULL);
        Some(entries.find(|entry| entry.tag(endian) == wanted)?.val(endian))
    };
    let Some(name) = value(DT_SONAME) else {
        return Some(None);
    };
    let address = value(DT_STRTAB)?.checked_add(name)?;
    let start = segments.iter().find_map(|segment| {
        let into = address.checked_sub(segment.p_vaddr(endian).into())?;
        let holds = segment.p_type(endian) == PT_LOAD && into < segment.p_filesz(endian).into();
        holds.then(|| segment.p_offset(endian).into().checked_add(into))?
    })?;
    let end = data.len().ok()?.min(start.checked_add(MAX_NAME_BYTES)?);
    Some(Some(data.read_bytes_at_until(start..end, 0).ok()?.to_owned()))
}

/// Returns whether `ldconfig` enters libraries with this `e_machine`: those for this processor, and 32-bit ones that it can execute.
fn is_for_this_machine(machine: u16) -> bool {
    use object::elf::{EM_386, EM_AARCH64, EM_ARM, EM_X86_64};
    let supported = [EM_X86_64, EM_386, EM_AARCH64, EM_ARM];
    let supported = match std::env::consts::ARCH {
        "x86_64" => &supported[..2],
        "aarch64" => &supported[2..],
        _ => return true,
    };
    supported.iter().any(|supported| supported.0 == machine)
}
