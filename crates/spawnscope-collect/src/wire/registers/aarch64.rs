//! The processor-dependent part of the wire format: registers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// General registers as aarch64 Linux saves them (the beginning of struct pt_regs).
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireRegisters {
    pub regs: [u64; 31],
    pub sp: u64,
    pub ip: u64,
    pub pstate: u64,
}

impl WireRegisters {
    /// Returns the registers in DWARF order: x0 to x30 and the stack pointer, followed by the
    /// instruction pointer.
    pub fn in_dwarf_order(&self) -> [u64; 33] {
        let mut all = [0; 33];
        all[..31].copy_from_slice(&self.regs);
        (all[31], all[32]) = (self.sp, self.ip);
        all
    }

    /// Whether the registers were captured.
    pub fn are_known(&self) -> bool {
        self.ip != 0
    }
}
