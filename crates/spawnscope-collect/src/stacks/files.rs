//! Opens the files whose code processes run, as the processes see them, and checks that a file is
//! the one that was mapped. If a file was replaced, functions have no names rather than wrong ones.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::mappings::{FileId, Mapping};
use crate::inode;
use spawnscope_data::event::Pid;

/// Opens the file of a mapping for reading. While the process is alive, opens the file as the
/// process sees it.
pub(super) fn open(pid: Pid, mapping: &Mapping) -> Option<File> {
    let handle = find_handle(pid, mapping)?;
    File::open(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()
}

/// Adds the modification time to the identity of a mapping's file, to distinguish it from other
/// files with the same inode number. /proc/PID/maps does not report this time.
pub(super) fn add_modification_time(pid: Pid, mapping: &mut Mapping) {
    let modified = find_handle(pid, mapping).and_then(|handle| modification_time(&handle));
    if let Some(file) = &mut mapping.file {
        file.id.modified = modified;
    }
}

/// Finds the file of a mapping without opening it for reading: opening a device or a pipe may have
/// side effects.
fn find_handle(pid: Pid, mapping: &Mapping) -> Option<File> {
    let mapped = mapping.file.as_ref()?;
    let path = Path::new(OsStr::from_bytes(&mapped.path));
    let within = path.strip_prefix("/").unwrap_or(path);
    let paths = [
        format!("/proc/{}/map_files/{:x}-{:x}", pid.0, mapping.start, mapping.end).into(),
        Path::new(&format!("/proc/{}/root", pid.0)).join(within),
        path.to_path_buf(),
    ];
    paths.iter().find_map(|path| find_at(path, &mapped.id))
}

/// Opens the file at `path`, if it is the one with this identity.
fn find_at(path: &Path, id: &FileId) -> Option<File> {
    let handle = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path).ok()?;
    let is_expected = inode::has_identity(&handle, id.inode, id.device)? && is_unchanged(&handle, id)?;
    is_expected.then_some(handle)
}

fn is_unchanged(handle: &File, id: &FileId) -> Option<bool> {
    let found = modification_time(handle)?;
    Some(id.modified.is_none_or(|recorded| recorded == found))
}

fn modification_time(handle: &File) -> Option<u64> {
    let found = handle.metadata().ok()?;
    Some(found.mtime() as u64 * 1_000_000_000 + found.mtime_nsec() as u64)
}
