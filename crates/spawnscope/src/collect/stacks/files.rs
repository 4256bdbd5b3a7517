//! Opens the files whose code processes run, as those saw them, and makes sure that a file is the one that was mapped: a
//! file that was replaced gives no names rather than wrong ones.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::mappings::{FileId, Mapping};
use crate::collect::inode;
use crate::event::Pid;

/// The file of a mapping, for reading: while the process lives, as the process sees it.
pub(super) fn open(pid: Pid, mapping: &Mapping) -> Option<File> {
    let mapped = mapping.file.as_ref()?;
    let path = Path::new(OsStr::from_bytes(&mapped.path));
    let within = path.strip_prefix("/").unwrap_or(path);
    let places = [
        format!("/proc/{}/map_files/{:x}-{:x}", pid.0, mapping.start, mapping.end).into(),
        Path::new(&format!("/proc/{}/root", pid.0)).join(within),
        path.to_path_buf(),
    ];
    places.iter().find_map(|place| open_if(place, &mapped.id))
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
    Some(id.modified.is_none_or(|told| told == modified) && inode::is(handle, id.inode, id.device)?)
}

/// How a process's pid namespace names the process.
pub(super) fn pid_in_its_namespace(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    pids.split_ascii_whitespace().next_back()?.parse().ok()
}
