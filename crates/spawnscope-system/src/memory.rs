//! Reads the memory of another process (process_vm_readv). Needs the right to trace it.

use spawnscope_data::event::Pid;

/// Up to `length` bytes from `address`; fewer where the memory ends, and none if it cannot be read.
#[must_use]
pub fn read(process: Pid, address: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::<u8>::with_capacity(length);
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: length,
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: length,
    };
    // SAFETY: the call writes at most `length` bytes to `bytes`, which has room for them. It accesses `remote` in the other process.
    let read = unsafe { libc::process_vm_readv(process.0, &raw const local, 1, &raw const remote, 1, 0) };
    // SAFETY: the kernel has written that many bytes.
    unsafe { bytes.set_len(usize::try_from(read).unwrap_or(0)) };
    bytes
}

/// The string at `address` up to its NUL, if it has one within `most` bytes.
#[must_use]
pub fn string(process: Pid, address: u64, most: usize) -> Option<Vec<u8>> {
    // Most strings are short, and a short read touches one page or two.
    for length in [256.min(most), most] {
        let mut bytes = read(process, address, length);
        if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
            bytes.truncate(end);
            return Some(bytes);
        }
    }
    None
}
