//! `vspawn_last_error`, the last failure of each thread.

use std::ffi::{c_char, c_int};

use crate::entry::entry;
use crate::failure::{ERROR_TEXT_BYTES, LAST};
use crate::pointers::{null, output_size};

/// The last failure of the calling thread.
#[repr(C)]
pub struct LastError {
    /// Set to sizeof(struct vspawn_error) by the caller. The library stores how many bytes it has
    /// filled.
    pub size: usize,
    /// The errno.
    pub error: c_int,
    /// The stage that failed: an enum vspawn_stage. A later library may have more values.
    pub stage: c_int,
    /// What failed, on what and why: a fragment that fits after "failed to", truncated to the
    /// buffer, with a NUL at its end.
    pub text: [c_char; ERROR_TEXT_BYTES],
}

/// Stores the calling thread's last failure: error 0 and stage VSPAWN_STAGE_NONE if there was none.
/// A success does not change it.
///
/// error: filled; its size must be set. Returns 0, or EINVAL (which is not itself stored as the
/// last failure).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_last_error(error: *mut LastError) -> c_int {
    let last = LAST.get();
    let code = entry(|| {
        if error.is_null() {
            return Err(null("error"));
        }
        let mut filled = LastError {
            size: size_of::<LastError>(),
            error: last.errno,
            stage: last.stage as c_int,
            text: last.text.map(|byte| byte as c_char),
        };
        // SAFETY: not NULL; the caller's struct begins with its size.
        let size = unsafe { output_size(error.cast(), size_of::<LastError>(), size_of::<LastError>()) }?;
        filled.size = size;
        // SAFETY: the caller's struct has at least this size.
        unsafe { std::ptr::copy_nonoverlapping((&raw const filled).cast::<u8>(), error.cast(), size) };
        Ok(())
    });
    LAST.set(last);
    code
}
