//! Reads files of /proc that describe the memory of another process, such as `smaps`. To produce such a file, the kernel takes the memory
//! lock of the process, and holds it while it walks all mappings. Therefore a child process reads the file, with a time limit, and only
//! files of small processes are read.

use std::ffi::{CStr, CString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use super::machine::Machine;
use super::processes::Process;
use spawnscope_system::launch_timing::isolated_child::IsolatedChild;
use spawnscope_system::process::{die_with_parent, is_readable_within};

/// The largest process whose files are read. The process cannot map or unmap memory while the kernel walks its mappings: for 1 GiB in
/// pages of 4 KiB, that took 30 ms on the project's machine.
const MAX_RESIDENT_BYTES: u64 = 1 << 30;
/// The time limit for one check that reads memory files.
pub(super) const TIMEOUT: Duration = Duration::from_millis(150);
/// At most this much of a file is read. For 65,530 mappings, the default maximum per process, `smaps` has 50 MB.
const MAX_FILE_BYTES: usize = 64 << 20;
/// The child process writes this byte after the complete file. The text itself does not contain it.
const END_MARK: u8 = 0;

/// Returns the content of a file in the process's /proc directory; `None` if the file may not be read or is not read completely before
/// `until`, or if the process is too large.
pub(super) fn read(machine: &Machine, process: &Process, file: &str, until: Instant) -> Option<String> {
    if process.resident_bytes > MAX_RESIDENT_BYTES || Instant::now() >= until {
        return None;
    }
    let path = CString::new(machine.path(process.file(file)).as_os_str().as_bytes()).ok()?;
    let (mut reader, writer) = std::io::pipe().ok()?;
    let child = IsolatedChild::fork(Some(writer.as_fd()), || copy(&path)).ok()?;
    drop(writer);
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 14];
    while bytes.len() < MAX_FILE_BYTES {
        if !is_readable_within(&reader, until.saturating_duration_since(Instant::now())) {
            return None;
        }
        match reader.read(&mut part).ok()? {
            0 => break,
            count => bytes.extend_from_slice(&part[..count]),
        }
    }
    drop(child);
    let text = bytes.strip_suffix(&[END_MARK])?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// Copies the file to descriptor 0, and adds `END_MARK` if it was read completely.
fn copy(path: &CStr) {
    die_with_parent(libc::SIGKILL);
    let mut part = [0_u8; 1 << 12];
    // SAFETY: plain system calls in our own child process; the path ends with a zero byte, and each buffer has the given size.
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
        libc::write(0, [END_MARK].as_ptr().cast(), 1);
    }
}
