//! aarch64: a call leaves the return address in x30, possibly signed, and the kernel builds signal
//! frames.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use gimli::{AArch64, Register, Vendor};

use crate::stacks::unwind::{Memory, Registers};

/// Number of registers: x0 to x30 and the stack pointer in DWARF order, and the next instruction's
/// address.
pub(crate) const REGISTERS: usize = 33;
pub(in crate::stacks) const STACK_POINTER: Register = AArch64::SP;
pub(in crate::stacks) const FRAME_POINTER: Register = AArch64::X29;
/// The next instruction's address.
pub(in crate::stacks) const NEXT_INSTRUCTION: Register = Register(32);
/// The register for which the unwind tables describe where the return address is.
pub(in crate::stacks) const RETURN_ADDRESS: Register = AArch64::X30;
/// Whether a leaf function may keep the return address in that register, so that the tables have no
/// rule for it.
pub(in crate::stacks) const RETURNS_BY_REGISTER: bool = true;
/// The vendor whose DWARF extensions may occur in tables.
pub(in crate::stacks) const VENDOR: Vendor = Vendor::AArch64;
/// Length of a call instruction, in bytes.
pub(in crate::stacks) const CALL_BYTES: usize = 4;

/// The offset from the stack pointer at which the kernel stores x0 to x30, the stack pointer and
/// the next instruction of the interrupted code (struct rt_sigframe in arch/arm64/kernel/signal.c):
/// siginfo_t has 128 bytes, the part of ucontext before uc_mcontext 176, the fault address 8.
const SAVED_REGISTERS: u64 = 128 + 176 + 8;

/// Returns a code address from a register or the stack, without the signature that pointer
/// authentication stores in the unused upper bits.
pub(in crate::stacks) fn code_address(value: u64) -> u64 {
    value & ((1 << 48) - 1)
}

/// Whether the instruction is a call: BL, BLR, or BLR with authentication.
pub(in crate::stacks) fn ends_with_call(code: &[u8; CALL_BYTES]) -> bool {
    let instruction = u32::from_le_bytes(*code);
    instruction & 0xfc00_0000 == 0x9400_0000
        || instruction & 0xffff_fc1f == 0xd63f_0000
        || instruction & 0xfeff_f800 == 0xd63f_0800
}

/// Returns the return address of a function that has put nothing on the stack, and the stack
/// pointer after the return.
pub(in crate::stacks) fn return_candidates(registers: &Registers, _: &Memory<'_>) -> [Option<(u64, u64)>; 1] {
    let returns_to = registers.get(RETURN_ADDRESS).map(code_address);
    [returns_to.map(|address| (address, registers.stack_pointer()))]
}

/// Returns the registers of the interrupted code, if this is the frame that the kernel builds for a
/// signal handler. The handler's return address is then that of the trampoline in the vDSO, whose
/// mapping is not reported and which no tables describe. An address is accepted if its offset in
/// the page is that of the trampoline, which is the same in every process.
pub(in crate::stacks) fn interrupted_registers(registers: &Registers, memory: &Memory<'_>) -> Option<Registers> {
    const PAGE: u64 = 4096;
    let next = registers.get(NEXT_INSTRUCTION)?;
    if next % PAGE != trampoline_address()? % PAGE {
        return None;
    }
    let saved = registers.stack_pointer().checked_add(SAVED_REGISTERS)?;
    let mut interrupted = Registers([None; REGISTERS]);
    for (number, register) in (0..).zip(&mut interrupted.0) {
        *register = Some(memory.read(saved.checked_add(8 * number)?)?);
    }
    (interrupted.stack_pointer() > registers.stack_pointer()).then_some(interrupted)
}

/// Returns the address, in this process, of the vDSO function that signal handlers return to: `mov
/// x8, #139; svc #0`.
fn trampoline_address() -> Option<u64> {
    const CODE: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
    static FOUND: OnceLock<Option<u64>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let page = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (start, end) = page.split_once(' ')?.0.split_once('-')?;
        let [start, end] = [start, end].map(|address| u64::from_str_radix(address, 16).ok());
        let mut code = vec![0; usize::try_from(end?.checked_sub(start?)?).ok()?];
        let memory = File::open("/proc/self/mem").ok()?;
        memory.read_exact_at(&mut code, start?).ok()?;
        let index = code.windows(CODE.len()).position(|window| window == CODE)?;
        Some(start? + index as u64)
    })
}

/// Returns the registers that calls preserve, the stack pointer, and the current address.
#[cfg(test)]
#[inline(always)]
pub(in crate::stacks) fn registers_here() -> Registers {
    let (mut frame, mut link, mut stack, mut next): (u64, u64, u64, u64);
    let mut preserved = [0u64; 10];
    // SAFETY: registers are only read, and the array has room for those that are stored.
    unsafe {
        std::arch::asm!(
            "mov {frame}, x29", "mov {link}, x30", "mov {stack}, sp", "adr {next}, .",
            "stp x19, x20, [{preserved}]", "stp x21, x22, [{preserved}, #16]", "stp x23, x24, [{preserved}, #32]",
            "stp x25, x26, [{preserved}, #48]", "stp x27, x28, [{preserved}, #64]",
            frame = out(reg) frame, link = out(reg) link, stack = out(reg) stack, next = out(reg) next,
            preserved = in(reg) preserved.as_mut_ptr(),
        );
    }
    let mut registers = [None; REGISTERS];
    for (register, value) in registers[19..29].iter_mut().zip(preserved) {
        *register = Some(value);
    }
    for (register, value) in registers[29..].iter_mut().zip([frame, link, stack, next]) {
        *register = Some(value);
    }
    Registers(registers)
}
