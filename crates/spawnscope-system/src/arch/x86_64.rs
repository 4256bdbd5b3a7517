//! x86-64. System calls are made by `syscall` with the number in rax.

use std::arch::{asm, global_asm};

use super::Entry;

/// EM_X86_64.
pub const ELF_MACHINE: u16 = 62;
/// Debian's library directories for this architecture.
pub const LIBRARY_DIRECTORIES: [&str; 2] = ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"];

/// Makes a system call. A result in -4095..=-1 is a negated errno.
///
/// # Safety
/// The arguments must be valid for this system call.
#[inline(always)]
pub unsafe fn call(number: libc::c_long, [a, b, c]: [usize; 3]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves all registers but these; the caller guarantees the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c,
            lateout("rcx") _, lateout("r11") _,
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
/// `number` and `arguments` must be a valid vfork, clone or clone3 call.
#[inline(never)]
pub unsafe fn clone_into(number: libc::c_long, [a, b]: [usize; 2], entry: Entry, argument: *const u8) -> isize {
    let result: isize;
    // SAFETY: the parent continues at label 2 with its registers and stack unchanged; the child
    // never reaches it.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "and rsp, -16",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") 0, in("r10") 0, in("r8") 0,
            in("r12") argument, in("r13") entry,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

pub const FORK_NUMBERS: Option<[libc::c_long; 2]> = Some([libc::SYS_fork, libc::SYS_vfork]);

pub fn vfork_call() -> (libc::c_long, [usize; 2]) {
    (libc::SYS_vfork, [0, 0])
}

/// Returns instructions that write the `length` bytes stored after them to standard output (none if
/// `length` is 0), and exit with `status`.
pub fn tiny_code(status: u8, length: u8) -> Vec<u8> {
    let mut code = Vec::new();
    if length > 0 {
        // mov edi, 1; mov edx, length; mov eax, edi (SYS_write); lea rsi, [rip + 14]; syscall
        code.extend([0xbf, 1, 0, 0, 0, 0xba, length, 0, 0, 0, 0x89, 0xf8]);
        code.extend([0x48, 0x8d, 0x35, 14, 0, 0, 0, 0x0f, 0x05]);
    }
    // mov edi, status; mov eax, SYS_exit_group; syscall
    code.extend([0xbf, status, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05]);
    code
}

/// Executes 32 KiB of no-ops, the size of the L1 instruction cache of most of these processors.
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
    ".fill 4096, 8, 0x0000000000841f0f",
    "ret",
    ".size spawnscope_fill_instruction_cache, . - spawnscope_fill_instruction_cache",
    ".popsection",
);

unsafe extern "C" {
    fn spawnscope_fill_instruction_cache();
}
