//! System calls and clone on aarch64: `svc 0`, with the number of the call in x8.

use std::arch::asm;

use super::Entry;

/// The largest page size. Kernels are built for pages of 4, 16 or 64 KiB (arch/arm64/Kconfig, "Page
/// size").
pub(crate) const MAX_PAGE_BYTES: usize = 64 * 1024;

/// # Safety
/// As for `sys::call`.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> isize {
    let result: isize;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel preserves all registers except x0; the arguments are the caller's promise.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
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
    // its own stack, calls `entry` and never reaches label 2. Its frame pointer and return address
    // are 0, so that a stack walk ends there.
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
            in("x1") b, in("x2") c, in("x3") d, in("x4") e,
            in("x20") argument, in("x16") entry,
        );
    }
    result
}

/// Returns clone's arguments in the order of this architecture: `tls` comes before `child_tid`.
pub(crate) fn clone_arguments(flags: usize, stack_top: usize, parent_tid: usize, child_tid: usize) -> [usize; 5] {
    [flags, stack_top, parent_tid, 0, child_tid]
}
