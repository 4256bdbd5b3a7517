//! x86-64: a call puts the return address on the stack, and every table describes where.

use gimli::{Register, Vendor, X86_64};

use crate::stacks::unwind::{Memory, Registers};

/// Number of registers: those with DWARF numbers up to that of the return address.
pub(crate) const REGISTERS: usize = 17;
pub(in crate::stacks) const STACK_POINTER: Register = X86_64::RSP;
pub(in crate::stacks) const FRAME_POINTER: Register = X86_64::RBP;
/// The next instruction's address.
pub(in crate::stacks) const NEXT_INSTRUCTION: Register = X86_64::RA;
/// The register for which the unwind tables describe where the return address is.
pub(in crate::stacks) const RETURN_ADDRESS: Register = X86_64::RA;
/// Whether a leaf function may keep the return address in that register, so that the tables have no
/// rule for it.
pub(in crate::stacks) const RETURNS_BY_REGISTER: bool = false;
/// The vendor whose DWARF extensions may occur in tables.
pub(in crate::stacks) const VENDOR: Vendor = Vendor::Default;
/// Length of the longest call instruction, in bytes.
pub(in crate::stacks) const CALL_BYTES: usize = 7;

/// Returns a code address from a register or the stack.
pub(in crate::stacks) fn code_address(value: u64) -> u64 {
    value
}

/// Whether these bytes end with a call: E8 with a 32-bit operand, or FF /2 with one of its operand
/// forms.
pub(in crate::stacks) fn ends_with_call(code: &[u8; CALL_BYTES]) -> bool {
    code[2] == 0xe8 || [2, 3, 4, 6, 7].iter().any(|length| begins_with_indirect_call(&code[CALL_BYTES - length..]))
}

fn begins_with_indirect_call(code: &[u8]) -> bool {
    code[0] == 0xff && code[1] >> 3 & 7 == 2
}

/// Returns the possible return addresses of a function that has put nothing on the stack, each with
/// the stack pointer after the return. The address may be on the stack, or in R12, where Go's
/// `syscall.rawVforkSyscall` keeps it because the child returns first
/// (src/syscall/asm_linux_amd64.s).
pub(in crate::stacks) fn return_candidates(registers: &Registers, memory: &Memory<'_>) -> [Option<(u64, u64)>; 2] {
    let stack = registers.stack_pointer();
    [memory.read(stack).zip(stack.checked_add(8)), registers.get(X86_64::R12).map(|address| (address, stack))]
}

/// Returns the registers of the code that a signal interrupted: always `None`, since on x86-64
/// signal handlers return to a function of libc, whose tables describe the frame.
pub(in crate::stacks) fn interrupted_registers(_: &Registers, _: &Memory<'_>) -> Option<Registers> {
    None
}

/// Returns the registers that calls preserve, the stack pointer, and the current address.
#[cfg(test)]
#[inline(always)]
pub(in crate::stacks) fn registers_here() -> Registers {
    let (mut rbx, mut rbp, mut rsp, mut rip): (u64, u64, u64, u64);
    let mut high = [0u64; 4];
    // SAFETY: registers are only read, and the array has room for those that are stored.
    unsafe {
        std::arch::asm!(
            "mov {rbx}, rbx", "mov {rbp}, rbp", "mov {rsp}, rsp", "lea {rip}, [rip]",
            "mov [{high}], r12", "mov [{high} + 8], r13", "mov [{high} + 16], r14", "mov [{high} + 24], r15",
            rbx = out(reg) rbx, rbp = out(reg) rbp, rsp = out(reg) rsp, rip = out(reg) rip,
            high = in(reg) high.as_mut_ptr(),
        );
    }
    let mut registers = [None; REGISTERS];
    (registers[3], registers[6], registers[7], registers[16]) = (Some(rbx), Some(rbp), Some(rsp), Some(rip));
    for (register, value) in registers[12..16].iter_mut().zip(high) {
        *register = Some(value);
    }
    Registers(registers)
}
