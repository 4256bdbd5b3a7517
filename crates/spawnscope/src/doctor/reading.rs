//! Files of /proc about the memory of another process: the kernel walks through all of it, waits for the process's own lock before,
//! and keeps it meanwhile. So they are read by a process of their own, for so long at most, and of small processes only.

use std::ffi::{CStr, CString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use super::child::{Child, die_with_parent, is_readable_within};
use super::machine::Machine;
use super::processes::Process;

/// While the kernel walks, the process cannot map or unmap memory: a GiB in pages of 4 KiB took it 30 ms on this project's machine.
/// Nobody's production is held up for longer than that.
const MOST_WALKED: u64 = 1 << 30;
/// How long a check may look at processes so.
pub(super) const PATIENCE: Duration = Duration::from_millis(150);
/// More is not read: 65,530 mappings, as many as a process may usually have, take 50 MB in the wordiest of these files.
const MOST_BYTES: usize = 64 << 20;
/// What the reading process writes last. Text has none.
const END: u8 = 0;

/// A file of the process; `None` where it may not be read, or cannot within that time, or the process is too large for it.
pub(super) fn of_memory(machine: &Machine, process: &Process, file: &str, until: Instant) -> Option<String> {
    if process.resident_bytes > MOST_WALKED || Instant::now() >= until {
        return None;
    }
    let path = CString::new(machine.path(process.file(file)).as_os_str().as_bytes()).ok()?;
    let (mut reader, writer) = std::io::pipe().ok()?;
    let child = Child::fork(Some(writer.as_fd()), || copy(&path)).ok()?;
    drop(writer);
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 14];
    while bytes.len() < MOST_BYTES {
        if !is_readable_within(&reader, until.saturating_duration_since(Instant::now())) {
            return None;
        }
        match reader.read(&mut part).ok()? {
            0 => break,
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
    drop(child);
    let text = bytes.strip_suffix(&[END])?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Writes the file to the descriptor 0, and `END` where it was read to its end.
fn copy(path: &CStr) {
    die_with_parent();
    let mut part = [0_u8; 1 << 12];
    // SAFETY: plain system calls in a process of our own, on a path that ends with a zero byte and on memory of that size.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        loop {
            match libc::read(file, part.as_mut_ptr().cast(), part.len()) {
                0 => break,
                count if count > 0 && libc::write(0, part.as_ptr().cast(), count.unsigned_abs()) == count => {}
                _ => return,
            }
        }
        libc::write(0, [END].as_ptr().cast(), 1);
    }
}
