//! C strings as slices, paths on the stack, and the comparison of files, without allocation.

use core::mem::MaybeUninit;

use libc::{c_char, c_int, stat};

/// An array of C strings that ends with NULL.
pub type StringArray = *const *const c_char;

/// The size of a buffer for a path and its NUL, in bytes. With a longer path, the shell is used.
pub const PATH_LIMIT: usize = 1024;

/// A path on the stack, ended by NUL.
pub struct PathBuffer {
    bytes: [u8; PATH_LIMIT],
}

impl PathBuffer {
    pub const fn new() -> PathBuffer {
        PathBuffer { bytes: [0; PATH_LIMIT] }
    }

    /// Writes the parts one after the other. Returns whether they fit.
    pub fn set(&mut self, parts: &[&[u8]]) -> bool {
        self.write(0, parts)
    }

    /// Writes the parts after the present ones. Returns whether they fit.
    pub fn push(&mut self, parts: &[&[u8]]) -> bool {
        self.write(self.as_bytes().len(), parts)
    }

    fn write(&mut self, mut length: usize, parts: &[&[u8]]) -> bool {
        for part in parts {
            let Some(room) = self.bytes.get_mut(length..length + part.len()) else { return false };
            room.copy_from_slice(part);
            length += part.len();
        }
        match self.bytes.get_mut(length) {
            Some(end) => *end = 0,
            None => return false,
        }
        true
    }

    pub fn as_ptr(&self) -> *const c_char {
        self.bytes.as_ptr().cast()
    }

    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    pub fn as_bytes(&self) -> &[u8] {
        let end = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        self.bytes.get(..end).unwrap_or(&[])
    }
}

/// Borrows a C string.
///
/// # Safety
/// `text` is a C string that lives for `'a`.
pub unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: a C string has that many bytes.
    unsafe { core::slice::from_raw_parts(text.cast(), libc::strlen(text)) }
}

/// Iterates over an array of C strings.
///
/// # Safety
/// `array` is NULL, or ends with NULL and lives while the iterator is used.
pub unsafe fn entries(mut array: StringArray) -> impl Iterator<Item = *const c_char> {
    let entries = core::iter::from_fn(move || {
        // SAFETY: the array ends with NULL, which ends the iteration.
        unsafe {
            let entry = *array.as_ref()?;
            array = array.add(1);
            (!entry.is_null()).then_some(entry)
        }
    });
    entries.fuse()
}

/// Returns the part of a path after its last slash.
pub fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Reads the status of the file that a path refers to. The error is the errno.
pub fn status_of(path: *const c_char) -> Result<stat, c_int> {
    let mut status = MaybeUninit::<stat>::uninit();
    // SAFETY: all callers pass a C string, and the buffer is a stat.
    if unsafe { libc::stat(path, status.as_mut_ptr()) } == 0 {
        // SAFETY: stat has filled it.
        Ok(unsafe { status.assume_init() })
    } else {
        Err(errno())
    }
}

pub fn is_directory(path: *const c_char) -> bool {
    status_of(path).is_ok_and(|status| status.st_mode & libc::S_IFMT == libc::S_IFDIR)
}

pub fn is_same_file(one: &stat, other: &stat) -> bool {
    one.st_dev == other.st_dev && one.st_ino == other.st_ino
}

pub fn errno() -> c_int {
    // SAFETY: the pointer is to this thread's errno.
    unsafe { *libc::__errno_location() }
}

pub fn set_errno(value: c_int) {
    // SAFETY: the pointer is to this thread's errno.
    unsafe { *libc::__errno_location() = value };
}
