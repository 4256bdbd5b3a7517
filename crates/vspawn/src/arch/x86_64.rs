//! System calls and clone on x86-64: `syscall`, with the number of the call in rax.

use std::arch::asm;

use super::Entry;

/// The largest page size. On x86-64, the kernel supports no other base page size.
pub(crate) const MAX_PAGE_BYTES: usize = 4096;

/// # Safety
/// As for `sys::call`.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let result: isize;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel preserves all registers except rax, rcx and r11; the arguments are the
    // caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    result
}

/// # Safety
/// As for `sys::clone_into`. Without CLONE_VM, the child needs no stack.
#[inline(never)]
pub(crate) unsafe fn clone_into(
    number: libc::c_long,
    arguments: [usize; 5],
    entry: Entry,
    argument: *const u8,
) -> isize {
    let result: isize;
    let [a, b, c, d, e] = arguments;
    // SAFETY: the parent continues at label 2 with its registers and stack unchanged; the child, on
    // its own stack, calls `entry` and never reaches label 2. The rest is the caller's promise.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e,
            in("r12") argument, in("r13") entry,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    result
}

/// Returns clone's arguments in the order of this architecture.
pub(crate) fn clone_arguments(flags: usize, stack_top: usize, parent_tid: usize, child_tid: usize) -> [usize; 5] {
    [flags, stack_top, parent_tid, child_tid, 0]
}
