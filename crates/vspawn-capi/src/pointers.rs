//! Converts C's arguments to Rust's types: strings, arrays, signal sets, and structs that begin
//! with their size.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;

use crate::entry::entry;
use crate::failure::Failure;
use crate::out_of_memory;

/// Returns the error for a required parameter that is NULL.
pub(crate) fn null(parameter: &str) -> Failure {
    Failure::invalid(&format!("use NULL as {parameter}"))
}

/// # Safety
/// `text` is NULL or a string.
pub(crate) unsafe fn string<'a>(text: *const c_char, parameter: &str) -> Result<&'a OsStr, Failure> {
    if text.is_null() {
        return Err(null(parameter));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_bytes();
    out_of_memory::reserve(text.len())?;
    Ok(OsStr::from_bytes(text))
}

/// # Safety
/// `strings` is NULL or an array of strings ended by NULL.
pub(crate) unsafe fn string_array<'a>(
    strings: *const *const c_char,
    parameter: &str,
) -> Result<Vec<&'a OsStr>, Failure> {
    if strings.is_null() {
        return Err(null(parameter));
    }
    let (mut next, mut bytes) = (strings, 0);
    // SAFETY: the caller's promise; the loops end at the NULL.
    unsafe {
        while !(*next).is_null() {
            bytes += CStr::from_ptr(*next).to_bytes().len() + out_of_memory::STRING_OVERHEAD_BYTES;
            next = next.add(1);
        }
        out_of_memory::reserve(bytes)?;
        let count = next.offset_from_unsigned(strings);
        let strings = std::slice::from_raw_parts(strings, count).iter();
        Ok(strings.map(|string| OsStr::from_bytes(CStr::from_ptr(*string).to_bytes())).collect())
    }
}

/// Converts an array, which may be NULL if it has no elements.
///
/// # Safety
/// `elements` is NULL or an array of `count` elements.
pub(crate) unsafe fn array<'a, T>(elements: *const T, count: usize, parameter: &str) -> Result<&'a [T], Failure> {
    match (elements.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(parameter)),
        // SAFETY: the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts(elements, count) }),
    }
}

/// # Safety
/// `handle` is NULL or live.
pub(crate) unsafe fn borrow<'a, T>(handle: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| null(name))
}

/// Returns the place for a new handle, which is NULL until then.
///
/// # Safety
/// `target` is NULL or room for a pointer.
pub(crate) unsafe fn out_handle<'a, T>(target: *mut *mut T, parameter: &str) -> Result<&'a mut *mut T, Failure> {
    // SAFETY: the caller's promise.
    let target = unsafe { target.as_mut() }.ok_or_else(|| null(parameter))?;
    *target = std::ptr::null_mut();
    Ok(target)
}

/// # Safety
/// `handle` is NULL or came from `Box::into_raw`, and no code uses it any more.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    entry(|| {
        if !handle.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// Returns the numbers of the signals in a set.
///
/// # Safety
/// `set` is NULL or a signal set.
pub(crate) unsafe fn signals(set: *const libc::sigset_t) -> Result<Vec<c_int>, Failure> {
    if set.is_null() {
        return Err(null("signals"));
    }
    // SAFETY: the caller's promise.
    Ok((1..=64).filter(|signal| unsafe { libc::sigismember(set, *signal) } == 1).collect())
}

/// The largest valid size of an options struct, in bytes. No version's struct will be larger, so a
/// larger size is uninitialised memory.
const MAX_OPTION_BYTES: usize = 4096;

/// Converts the caller's options struct, which begins with its size, to this library's version.
/// Fields that an older caller does not have are zero. Fields that only a newer caller has are
/// refused if they are set.
///
/// # Safety
/// `options` points to as many bytes as its first field says, and `T` is `repr(C)` and valid when
/// all zero.
pub(crate) unsafe fn options<T: Copy>(options: *const T) -> Result<T, Failure> {
    let (bytes, known) = (options.cast::<u8>(), size_of::<T>());
    // SAFETY: the caller's promise.
    let size = unsafe { bytes.cast::<usize>().read() };
    if !(size_of::<usize>()..=MAX_OPTION_BYTES).contains(&size) {
        return Err(Failure::invalid("use options whose size is not set"));
    }
    // SAFETY: the struct has `size` bytes.
    let has_unknown_fields = (known..size).any(|offset| unsafe { *bytes.add(offset) } != 0);
    if has_unknown_fields {
        return Err(Failure::invalid("use options that this version does not support"));
    }
    // SAFETY: valid when all zero, and only the common size is copied.
    unsafe {
        let mut copy: T = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(bytes, (&raw mut copy).cast(), size.min(known));
        Ok(copy)
    }
}
