//! x86-64: a call puts the address to return to on the stack, of which every table says so.

use gimli::{Register, Vendor, X86_64};

use crate::collect::stacks::unwind::{Memory, Registers};

/// The registers that DWARF numbers, up to the one that stands for where the caller goes on.
pub(in crate::collect) const REGISTERS: usize = 17;
pub(in crate::collect::stacks) const STACK_POINTER: Register = X86_64::RSP;
pub(in crate::collect::stacks) const FRAME_POINTER: Register = X86_64::RBP;
/// Where the next instruction is.
pub(in crate::collect::stacks) const NEXT_INSTRUCTION: Register = X86_64::RA;
/// Of which tables say where the address to return to is.
pub(in crate::collect::stacks) const RETURN_ADDRESS: Register = X86_64::RA;
/// Whether a function that calls nobody may leave the address to return to in that register, without a rule.
pub(in crate::collect::stacks) const RETURNS_BY_REGISTER: bool = false;
/// Whose own instructions there may be in tables.
pub(in crate::collect::stacks) const VENDOR: Vendor = Vendor::Default;
/// The longest instruction that calls.
pub(in crate::collect::stacks) const CALL_BYTES: usize = 7;

/// The address of code in a register or on the stack.
pub(in crate::collect::stacks) fn code_address(value: u64) -> u64 {
    value
}

/// Whether a call ends these bytes: the instruction E8 with 32 bits, or FF /2 with one of its operands.
pub(in crate::collect::stacks) fn ends_with_call(code: &[u8; CALL_BYTES]) -> bool {
    let is_indirect = |length: &usize| {
        let place = code.len() - length;
        code[place] == 0xff && code[place + 1] >> 3 & 7 == 2
    };
    code[2] == 0xe8 || [2, 3, 4, 6, 7].iter().any(is_indirect)
}

/// Where a function returns to that has put nothing on the stack, and the stack pointer then.
pub(in crate::collect::stacks) fn bare_return(registers: &Registers, memory: &Memory<'_>) -> Option<(u64, u64)> {
    let stack = registers.stack_pointer();
    Some((memory.read(stack)?, stack.checked_add(8)?))
}

/// The registers of whoever a signal interrupted: here the frame of a signal is libc's, and in its tables.
pub(in crate::collect::stacks) fn interrupted(_: &Registers, _: &Memory<'_>) -> Option<Registers> {
    None
}

/// The registers that calls preserve, where the stack is, and where this is.
#[cfg(test)]
#[inline(always)]
pub(in crate::collect::stacks) fn registers_here() -> Registers {
    let (mut rbx, mut rbp, mut rsp, mut rip): (u64, u64, u64, u64);
    let mut high = [0u64; 4];
    // SAFETY: registers are only read, and the array has room for those that are stored.
    unsafe {
        std::arch::asm!(
            "mov {rbx}, rbx", "mov {rbp}, rbp", "mov {rsp}, rsp", "lea {rip}, [rip]",
            "mov [{high}], r12", "mov [{high} + 8], r13", "mov [{high} + 16], r14", "mov [{high} + 24], r15",
            rbx = out(reg) rbx, rbp = out(reg) rbp, rsp = out(reg) rsp, rip = out(reg) rip, high = in(reg) high.as_mut_ptr(),
        );
    }
    let mut registers = [None; REGISTERS];
    (registers[3], registers[6], registers[7], registers[16]) = (Some(rbx), Some(rbp), Some(rsp), Some(rip));
    for (place, value) in registers[12..16].iter_mut().zip(high) {
        *place = Some(value);
    }
    Registers(registers)
}
