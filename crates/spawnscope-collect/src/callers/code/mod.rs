//! Finds the variables that a short function reads, from its machine code. There is one file per
//! processor.

mod aarch64;
mod x86_64;

use object::elf::{EM_AARCH64, EM_X86_64, Machine};

/// Returns the addresses of the eight-byte values that the code at `address` loads or compares with
/// PC-relative addressing. They are in the order of the code, and may contain duplicates.
pub(super) fn variables_read(machine: Machine, code: &[u8], address: u64) -> Vec<u64> {
    match machine {
        EM_X86_64 => x86_64::variables_read(code, address),
        EM_AARCH64 => aarch64::variables_read(code, address),
        _ => Vec::new(),
    }
}
