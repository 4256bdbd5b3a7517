//! aarch64. System calls are made by `svc 0` with the number in x8.

use std::arch::{asm, global_asm};

use super::Entry;

/// EM_AARCH64.
pub const ELF_MACHINE: u16 = 183;
/// Debian's library directories for this architecture.
pub const LIBRARY_DIRECTORIES: [&str; 2] = ["/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];

/// Makes a system call. A result in -4095..=-1 is a negated errno.
///
/// # Safety
/// The arguments must be valid for this system call.
#[inline(always)]
pub unsafe fn call(number: libc::c_long, [a, b, c]: [usize; 3]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves all registers but x0; the caller guarantees the arguments.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c,
            options(nostack)
        );
    }
    result
}

/// Makes a clone call whose child starts in `entry(argument)`, which never returns. A child without
/// a stack of its own uses the caller's stack, below the caller's frame; the caller must then wait
/// until the child has executed a program or ended.
///
/// # Safety
/// `number` and `arguments` must be a valid clone or clone3 call.
#[inline(never)]
pub unsafe fn clone_into(number: libc::c_long, [a, b]: [usize; 2], entry: Entry, argument: *const u8) -> isize {
    let result: isize;
    // SAFETY: the parent continues at label 2 with its registers and stack unchanged; the child
    // never reaches it. The child's frame pointer and return address are 0, which ends a stack
    // walk.
    unsafe {
        asm!(
            "svc 0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x20",
            "br x16",
            "2:",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") 0, in("x3") 0, in("x4") 0,
            in("x20") argument, in("x16") entry,
        );
    }
    result
}

/// The numbers of fork and vfork. This architecture has neither call; libc uses clone.
pub const FORK_NUMBERS: Option<[libc::c_long; 2]> = None;

/// Returns the number and arguments of the clone call that libc's vfork makes.
pub fn vfork_call() -> (libc::c_long, [usize; 2]) {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    (libc::SYS_clone, [flags as usize, 0])
}

/// Returns instructions that write the `length` bytes stored after them to standard output (none if
/// `length` is 0), and exit with `status`.
pub fn tiny_code(status: u8, length: u8) -> Vec<u8> {
    let svc = 0xd400_0001;
    let mut code = Vec::new();
    if length > 0 {
        // mov x0, 1; adr x1, +7 instructions; mov x2, length; mov x8, SYS_write; svc 0
        code.extend([movz(0, 1), 0x1000_0000 | 7 << 5 | 1, movz(2, u32::from(length)), movz(8, 64), svc]);
    }
    code.extend([movz(0, u32::from(status)), movz(8, 94), svc]);
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Returns the instruction that writes a value of 16 bits to a register.
pub fn movz(register: u32, value: u32) -> u32 {
    0xd280_0000 | value << 5 | register
}

/// Executes 64 KiB of no-ops, the size of the L1 instruction cache of most of these processors.
pub fn fill_instruction_cache() {
    // SAFETY: a function without arguments or effects.
    unsafe { spawnscope_fill_instruction_cache() };
}

global_asm!(
    ".pushsection .text.spawnscope_fill_instruction_cache, \"ax\", @progbits",
    ".balign 64",
    ".globl spawnscope_fill_instruction_cache",
    ".hidden spawnscope_fill_instruction_cache",
    ".type spawnscope_fill_instruction_cache, @function",
    "spawnscope_fill_instruction_cache:",
    ".fill 16384, 4, 0xd503201f",
    "ret",
    ".size spawnscope_fill_instruction_cache, . - spawnscope_fill_instruction_cache",
    ".popsection",
);

unsafe extern "C" {
    fn spawnscope_fill_instruction_cache();
}
