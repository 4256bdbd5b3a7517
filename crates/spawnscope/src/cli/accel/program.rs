//! Detects commands into which the dynamic loader does not load the library: static ones, and set-user-id or set-group-id ones.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

const SET_ID: u32 = 0o6000;
const ELF64: [u8; 5] = *b"\x7fELF\x02";
/// The type of the program header that names the dynamic loader (elf(5)).
const PT_INTERP: u32 = 3;

/// Returns the notice for a command into which the library cannot be loaded.
pub fn notice(name: &OsStr) -> Option<String> {
    let path = find(name)?;
    let file = fs::File::open(&path).ok()?;
    if file.metadata().ok()?.mode() & SET_ID != 0 {
        return Some(format!(
            "{} is set-user-id or set-group-id: accel has no effect on it or on what it launches",
            path.display()
        ));
    }
    (is_static(&file) == Some(true)).then(|| {
        format!(
            "{} is statically linked: accel has no effect on its own launches, only on those of dynamic programs that it launches",
            path.display()
        )
    })
}

/// Finds the command's file, in PATH if the name has no slash.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(Path::new(name))).find(|path| path.is_file())
}

/// Returns whether a program names no dynamic loader. `None` if the file is not a 64-bit ELF file.
fn is_static(mut file: &fs::File) -> Option<bool> {
    let mut header = [0; 64];
    file.read_exact(&mut header).ok()?;
    if !header.starts_with(&ELF64) {
        return None;
    }
    let offset = u64::from_ne_bytes(header[32..40].try_into().ok()?);
    let size = u16::from_ne_bytes(header[54..56].try_into().ok()?);
    let count = u16::from_ne_bytes(header[56..58].try_into().ok()?);
    for index in 0..u64::from(count) {
        let mut segment_type = [0; 4];
        let header_offset = offset.checked_add(index * u64::from(size))?;
        file.read_exact_at(&mut segment_type, header_offset).ok()?;
        if u32::from_ne_bytes(segment_type) == PT_INTERP {
            return Some(false);
        }
    }
    Some(true)
}
