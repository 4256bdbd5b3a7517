//! Reads the memory of another process by process_vm_readv(2), which requires the permission to
//! trace that process.

use spawnscope_data::event::Pid;

/// Reads up to `length` bytes from `address`. Returns fewer bytes if the memory ends earlier, and
/// none if it cannot be read.
pub fn read(process: Pid, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::<u8>::with_capacity(length);
    // SAFETY: `bytes` has room for `length` bytes, and the call has written as many bytes as it
    // returns.
    unsafe {
        let read = read_to(process, address, bytes.as_mut_ptr(), length);
        bytes.set_len(read);
    }
    bytes
}

/// Like `read`, but reads into `bytes` without allocating. Returns how many bytes were read.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read_into(process: Pid, address: u64, bytes: &mut [u8]) -> usize {
    // SAFETY: `bytes` has room for its length.
    unsafe { read_to(process, address, bytes.as_mut_ptr(), bytes.len()) }
}

/// Reads up to `length` bytes from `address` to `to`, and returns how many were read.
///
/// # Safety
/// There must be room for `length` bytes at `to`.
unsafe fn read_to(process: Pid, address: u64, to: *mut u8, length: usize) -> usize {
    let local = libc::iovec { iov_base: to.cast(), iov_len: length };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: length };
    // SAFETY: the call writes at most `length` bytes to `to`. It accesses `remote` in the other
    // process.
    let read = unsafe { libc::process_vm_readv(process.0, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Reads words from several addresses in one call; `None` if one of them cannot be read.
pub(crate) fn read_words<const N: usize>(process: Pid, addresses: [u64; N]) -> Option<[u64; N]> {
    let mut words = [0; N];
    let local = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
    let remote = addresses.map(|at| libc::iovec { iov_base: at as *mut libc::c_void, iov_len: size_of::<u64>() });
    // SAFETY: the call writes at most N words to `words`. It accesses `remote` in the other
    // process.
    let read =
        unsafe { libc::process_vm_readv(process.0, &raw const local, 1, remote.as_ptr(), N as libc::c_ulong, 0) };
    (usize::try_from(read) == Ok(size_of_val(&words))).then_some(words)
}

/// Returns the bytes of a number at `at`; `None` if `bytes` ends earlier.
pub fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Returns the string at `address` without its NUL; `None` if there is no NUL within `max_bytes`
/// bytes.
pub fn read_string(process: Pid, address: u64, max_bytes: usize) -> Option<Vec<u8>> {
    // Most strings are short, and a short read touches only one or two pages.
    for length in [256.min(max_bytes), max_bytes] {
        let mut bytes = read(process, address, length);
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            bytes.truncate(end);
            return Some(bytes);
        }
    }
    None
}
