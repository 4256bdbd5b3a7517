//! Which variables a short function reads, by its machine code: one file for each processor, as the program's file names it.

mod aarch64;
mod x86_64;

use object::elf::{EM_AARCH64, EM_X86_64, Machine};

/// Where the code at `address` loads or compares eight bytes from that it names relative to itself; in order, perhaps repeatedly.
pub(super) fn reads(machine: Machine, code: &[u8], address: u64) -> Vec<u64> {
    match machine {
        EM_X86_64 => x86_64::reads(code, address),
        EM_AARCH64 => aarch64::reads(code, address),
        _ => Vec::new(),
    }
}
