//! Reads files of /proc that describe the memory of another process. For these the kernel takes the memory lock of that process, walks all
//! of its mappings, and holds the lock until it has finished. A child process therefore reads them, with a time limit, and only for small
//! processes.

use std::ffi::{CStr, CString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use super::machine::Machine;
use super::processes::Process;
use spawnscope_system::launch_timing::isolated_child::IsolatedChild;
use spawnscope_system::process::{die_with_parent, is_readable_within};

/// While the kernel walks, the process cannot map or unmap memory: for 1 GiB in pages of 4 KiB the walk took 30 ms on the project's
/// machine. The doctor blocks no process for longer.
const MAX_WALKED: u64 = 1 << 30;
/// How long one check may read such files.
pub(super) const TIMEOUT: Duration = Duration::from_millis(150);
/// The read limit. 65,530 mappings, the default maximum per process, take 50 MB in the most verbose of these files.
const MAX_BYTES: usize = 64 << 20;
/// The last byte that the reading process writes. The text itself contains none.
const END: u8 = 0;

/// The content of a file of the process; `None` if it may not be read, is not read before `until`, or the process is too large.
pub(super) fn of_memory(machine: &Machine, process: &Process, file: &str, until: Instant) -> Option<String> {
    if process.resident_bytes > MAX_WALKED || Instant::now() >= until {
        return None;
    }
    let path = CString::new(machine.path(process.file(file)).as_os_str().as_bytes()).ok()?;
    let (mut reader, writer) = std::io::pipe().ok()?;
    let child = IsolatedChild::fork(Some(writer.as_fd()), || copy(&path)).ok()?;
    drop(writer);
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 14];
    while bytes.len() < MAX_BYTES {
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

/// Writes the file to descriptor 0, followed by `END` if it was read completely.
fn copy(path: &CStr) {
    die_with_parent(libc::SIGKILL);
    let mut part = [0_u8; 1 << 12];
    // SAFETY: plain system calls in a child process of ours, on a path that ends with a zero byte and on memory of the given size.
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
