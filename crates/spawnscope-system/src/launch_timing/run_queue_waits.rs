//! How long processes waited for a CPU: the part of a launch that only shows how busy the machine
//! is. `RunQueueWaits` is usable in measuring processes; `is_runnable` is not: it allocates.

use std::ffi::{CStr, c_int};
use std::io::Write;

use rustix::fs::{Mode, OFlags};
use spawnscope_data::event::{Nanos, Pid};

use crate::procfs::Status;

/// Size of a buffer for the path of a /proc file, or for its content: three numbers of up to 20
/// digits.
const BUFFER_BYTES: usize = 72;

/// The run queue time of this process when a launch began; `None` if the kernel does not count it.
#[derive(Debug)]
pub struct RunQueueWaits(Option<Nanos>);

impl RunQueueWaits {
    /// Reads the time that this process has spent in the run queue so far.
    #[must_use]
    pub fn begin() -> RunQueueWaits {
        RunQueueWaits(if proc_has_our_pids() { second_number(c"/proc/self/schedstat") } else { None })
    }

    /// Returns the run queue time of this process since `begin`, plus all the run queue time of the
    /// child, which must not have been reaped. Zero if either is unknown.
    pub fn until_end_of(&self, child: c_int) -> Nanos {
        let [own, of_child] = self.each_until_end_of(child);
        Nanos(own.0 + of_child.0)
    }

    /// Returns both run queue times by themselves.
    pub fn each_until_end_of(&self, child: c_int) -> [Nanos; 2] {
        self.known_until_end_of(child).unwrap_or_default()
    }

    fn known_until_end_of(&self, child: c_int) -> Option<[Nanos; 2]> {
        let ours = second_number(c"/proc/self/schedstat")?.since(self.0?);
        let mut path = [0; BUFFER_BYTES];
        write!(&mut path[..], "/proc/{child}/schedstat").ok()?;
        Some([ours, second_number(CStr::from_bytes_until_nul(&path).ok()?)?])
    }
}

/// Whether a child is running or waiting for a CPU; `false` if unknown. Allocates, so measuring
/// processes must not call it.
pub fn is_runnable(child: c_int) -> bool {
    proc_has_our_pids() && Status::read(Pid(child)).is_some_and(|status| status.is_runnable())
}

/// Whether /proc shows the pids of our namespace. In a new pid namespace, /proc may still belong to
/// another one.
fn proc_has_our_pids() -> bool {
    let mut text = [0; BUFFER_BYTES];
    let length = rustix::fs::readlinkat_raw(rustix::fs::CWD, c"/proc/self", &mut text[..]).unwrap_or(0);
    let text = std::str::from_utf8(&text[..length]).ok();
    text.and_then(|text| text.parse().ok()) == Some(std::process::id())
}

fn second_number(path: &CStr) -> Option<Nanos> {
    let mut text = [0u8; BUFFER_BYTES];
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let length = rustix::io::read(&file, &mut text).ok()?;
    let text = std::str::from_utf8(text.get(..length)?).ok()?;
    text.split(' ').nth(1)?.parse().ok().map(Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_of_a_file_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("schedstat");
        let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        for (text, second) in [("123 4567 8\n", Some(Nanos(4567))), ("", None), ("1", None), ("1 x 2", None)] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(second_number(&path), second, "{text}");
        }
        assert_eq!(second_number(c"/nowhere/at/all"), None);
    }
}
