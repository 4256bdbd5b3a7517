//! The strings that the kernel reads at an exec.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, Stage};

/// Strings in the form that execve takes: an array of pointers, ended by NULL. The bytes of all
/// strings are in one block.
pub(crate) struct StringArray {
    _bytes: Vec<u8>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are into `_bytes`, which never changes.
unsafe impl Send for StringArray {}
// SAFETY: as above.
unsafe impl Sync for StringArray {}

impl StringArray {
    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }

    /// Returns pointers to the strings, without the NULL at the end.
    pub(crate) fn pointers(&self) -> &[*const c_char] {
        self.pointers.split_last().map_or(&[], |(_, strings)| strings)
    }
}

/// Builds a `StringArray`: the pointers can be taken only when the block has its final size.
#[derive(Default)]
pub(crate) struct StringArrayBuilder {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl StringArrayBuilder {
    pub(crate) fn with_capacity(strings: usize, bytes: usize) -> Result<StringArrayBuilder, Error> {
        let mut empty = StringArrayBuilder::default();
        empty.reserve(strings, bytes)?;
        Ok(empty)
    }

    /// Returns a builder with room for the variables of most processes, so that it need not grow.
    pub(crate) fn for_environment() -> StringArrayBuilder {
        StringArrayBuilder { bytes: Vec::with_capacity(8192), starts: Vec::with_capacity(96) }
    }

    /// Reserves memory. A command may be large, and a failed allocation must not abort the process.
    pub(crate) fn reserve(&mut self, strings: usize, bytes: usize) -> Result<(), Error> {
        let room = self.bytes.try_reserve(bytes + strings);
        room.and_then(|()| self.starts.try_reserve(strings))
            .map_err(|_| Error::new(Stage::Prepare, libc::ENOMEM, "allocate the arguments and variables"))
    }

    /// Adds the joined parts. Returns false if they contain a NUL byte.
    #[must_use]
    pub(crate) fn push(&mut self, parts: &[&OsStr]) -> bool {
        let start = self.bytes.len();
        self.starts.push(start);
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part.as_bytes()));
        let has_no_nul = !self.bytes[start..].contains(&0);
        self.bytes.push(0);
        has_no_nul
    }

    pub(crate) fn push_c_string(&mut self, string: &CStr) {
        self.starts.push(self.bytes.len());
        self.bytes.extend_from_slice(string.to_bytes_with_nul());
    }

    pub(crate) fn finish(self) -> StringArray {
        let mut pointers = Vec::with_capacity(self.starts.len() + 1);
        // SAFETY: each start is within the block.
        pointers.extend(self.starts.iter().map(|start| unsafe { self.bytes.as_ptr().add(*start).cast() }));
        pointers.push(std::ptr::null());
        StringArray { pointers, _bytes: self.bytes }
    }
}
