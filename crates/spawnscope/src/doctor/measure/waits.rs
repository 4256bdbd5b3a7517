//! How long processes waited for a processor: time of a launch that says nothing but that the machine is busy. Used in small processes
//! (`small`), so by the rules of such a process.

use std::ffi::{CStr, c_char, c_int};

use crate::event::Nanos;

/// Room for the name of a process's file, or for what is in it: three numbers of up to 20 digits.
const ROOM: usize = 72;

/// Our own waits until a launch began; unknown where the kernel does not count them.
pub(super) struct Waits(Option<Nanos>);

impl Waits {
    pub(super) fn begin() -> Waits {
        Waits(if sees_itself() {
            of(c"/proc/self/schedstat")
        } else {
            None
        })
    }

    /// Ours since then, and all of a child that was not reaped yet; zero where they are unknown.
    pub(super) fn until_end_of(&self, child: c_int) -> Nanos {
        let known = || {
            let ours = of(c"/proc/self/schedstat")?.since(self.0?);
            let path = join([b"/proc/", digits(child, &mut [0; 10]), b"/schedstat"]);
            Some(Nanos(ours.0 + of(CStr::from_bytes_until_nul(&path).ok()?)?.0))
        };
        known().unwrap_or_default()
    }
}

/// Whether a child of ours runs, or would if it had a processor; `false` where that is unknown. Allocates, so it is for the doctor only.
pub(super) fn is_runnable(child: c_int) -> bool {
    let stat = std::fs::read(format!("/proc/{child}/stat")).unwrap_or_default();
    // The name before it may hold anything.
    let state = stat.rsplit(|&byte| byte == b')').next().and_then(|rest| rest.get(1));
    sees_itself() && state == Some(&b'R')
}

/// Whether the pids in /proc are those that we know: they are not in a new pid namespace with the /proc of another.
fn sees_itself() -> bool {
    let mut text = [0; ROOM];
    // SAFETY: the path ends with NUL, and there is room for as many bytes.
    let length = unsafe { libc::readlink(c"/proc/self".as_ptr(), text.as_mut_ptr().cast::<c_char>(), ROOM) };
    // SAFETY: a plain system call.
    let pid = unsafe { libc::getpid() };
    text.get(..length.max(0) as usize) == Some(digits(pid, &mut [0; 10]))
}

/// The second number of that file.
fn of(path: &CStr) -> Option<Nanos> {
    let mut text = [0u8; ROOM];
    // SAFETY: the path ends with NUL, and there is room for as many bytes.
    let length = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(file, text.as_mut_ptr().cast(), ROOM);
        libc::close(file);
        length
    };
    let text = text.get(..usize::try_from(length).ok()?)?;
    let second = text.split(|&byte| byte == b' ').nth(1)?;
    second.iter().try_fold(Nanos(0), |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(Nanos(number.0.wrapping_mul(10).wrapping_add(digit)))
    })
}

/// In decimal; a pid has up to ten digits.
fn digits(pid: c_int, room: &mut [u8; 10]) -> &[u8] {
    let mut rest = pid.unsigned_abs();
    let mut begin = room.len();
    for place in room.iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        begin -= 1;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    &room[begin..]
}

/// One behind the other, with NULs to the end.
fn join(parts: [&[u8]; 3]) -> [u8; ROOM] {
    let mut joined = [0; ROOM];
    for (place, byte) in joined.iter_mut().zip(parts.into_iter().flatten()) {
        *place = *byte;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_are_written_as_they_are_read() {
        for pid in [1, 10, 4_194_304, c_int::MAX] {
            assert_eq!(digits(pid, &mut [0; 10]), pid.to_string().as_bytes());
        }
        assert!(join([b"/proc/", b"7", b"/x"]).starts_with(b"/proc/7/x\0"));
    }

    #[test]
    fn the_second_number_is_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let file = folder.path().join("schedstat");
            std::fs::write(&file, text).unwrap();
            let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
            of(&path)
        };
        assert_eq!(read("123 4567 8\n"), Some(Nanos(4567)));
        assert_eq!([read(""), read("1"), read("1 x 2")], [None; 3]);
        assert_eq!(of(c"/nowhere/at/all"), None);
    }
}
