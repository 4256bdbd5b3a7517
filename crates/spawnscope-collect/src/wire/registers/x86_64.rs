//! The processor-dependent part of the wire format: registers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// General registers as x86-64 Linux saves them (struct pt_regs).
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireRegisters {
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub bp: u64,
    pub bx: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub ax: u64,
    pub cx: u64,
    pub dx: u64,
    pub si: u64,
    pub di: u64,
    pub orig_ax: u64,
    pub ip: u64,
    pub cs: u64,
    pub flags: u64,
    pub sp: u64,
    pub ss: u64,
}

impl WireRegisters {
    /// Returns the registers in DWARF order, ending with the instruction pointer.
    pub fn in_dwarf_order(&self) -> [u64; 17] {
        [
            self.ax, self.dx, self.cx, self.bx, self.si, self.di, self.bp, self.sp, self.r8, self.r9, self.r10,
            self.r11, self.r12, self.r13, self.r14, self.r15, self.ip,
        ]
    }

    /// Whether the registers were captured.
    pub fn are_known(&self) -> bool {
        self.ip != 0
    }
}
