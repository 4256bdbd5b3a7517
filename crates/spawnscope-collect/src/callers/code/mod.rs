//! Finds the variables that a short function reads, from its machine code. One file per processor, named after the ELF machine.

mod aarch64;
mod x86_64;

use object::elf::{EM_AARCH64, EM_X86_64, Machine};

/// The addresses of eight-byte loads and comparisons relative to the code at `address`, in order; there may be duplicates.
pub(super) fn reads(machine: Machine, code: &[u8], address: u64) -> Vec<u64> {
    match machine {
        EM_X86_64 => x86_64::reads(code, address),
        EM_AARCH64 => aarch64::reads(code, address),
        _ => Vec::new(),
    }
}
