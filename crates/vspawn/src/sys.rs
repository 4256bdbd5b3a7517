//! Raw system calls: no libc function, no errno, no cancellation point. What is called between clone and exec, where
//! memory is shared with a running parent, goes through here and nothing else. x86-64 only.

use std::arch::asm;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("vspawn knows Linux on x86-64 only: its raw system calls are written for that");

/// A system call's failure: the errno, positive.
pub(crate) type Errno = i32;

/// Makes a system call.
///
/// # Safety
/// The arguments must be what this system call may be given.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    let result: isize;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the kernel preserves all registers but these; the arguments are the caller's promise.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    // The kernel returns errors as -4095..=-1.
    if (-4095..0).contains(&result) {
        Err(-result as Errno)
    } else {
        Ok(result as usize)
    }
}

/// `syscall!(SYS_close, fd)`: a raw system call with up to six integers or pointers.
macro_rules! syscall {
    ($name:ident) => { syscall!(@ $name, 0, 0, 0, 0, 0, 0) };
    ($name:ident, $a:expr) => { syscall!(@ $name, $a, 0, 0, 0, 0, 0) };
    ($name:ident, $a:expr, $b:expr) => { syscall!(@ $name, $a, $b, 0, 0, 0, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr) => { syscall!(@ $name, $a, $b, $c, 0, 0, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr, $d:expr) => { syscall!(@ $name, $a, $b, $c, $d, 0, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => { syscall!(@ $name, $a, $b, $c, $d, $e, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => { syscall!(@ $name, $a, $b, $c, $d, $e, $f) };
    (@ $name:ident, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        $crate::sys::call(
            libc::$name,
            [$a as usize, $b as usize, $c as usize, $d as usize, $e as usize, $f as usize],
        )
    };
}
pub(crate) use syscall;

/// A clone call whose child begins in `entry(argument)`, on a stack of its own, and never returns.
///
/// # Safety
/// `number` and `arguments` must be a valid clone or clone3 call that gives the child a stack aligned to 16 bytes,
/// large enough for `entry`, and used by nobody else until the child has left this memory. `entry` must not return.
#[inline(never)]
pub(crate) unsafe fn clone_into(
    number: libc::c_long,
    arguments: [usize; 5],
    entry: unsafe extern "C" fn(*const u8) -> !,
    argument: *const u8,
) -> Result<usize, Errno> {
    let result: isize;
    let [a, b, c, d, e] = arguments;
    // SAFETY: the parent comes out at label 2 with its registers and stack as they were; the child, on its own stack,
    // calls `entry` and never gets there. The rest is the caller's promise.
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
    if (-4095..0).contains(&result) {
        Err(-result as Errno)
    } else {
        Ok(result as usize)
    }
}

/// A set of signals as the kernel takes it: bit N-1 is signal N.
pub(crate) type SignalSet = u64;
/// Number of signals, and of bytes of a `SignalSet`.
pub(crate) const SIGNALS: i32 = 64;
pub(crate) const SIGNAL_SET_BYTES: usize = size_of::<SignalSet>();

/// A signal's bit.
pub(crate) const fn signal_bit(signal: i32) -> SignalSet {
    1 << (signal - 1)
}

/// The kernel's `struct sigaction` (not libc's).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct SignalAction {
    pub(crate) handler: usize,
    pub(crate) flags: u64,
    pub(crate) restorer: usize,
    pub(crate) mask: SignalSet,
}

/// The kernel's `struct clone_args`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct CloneArgs {
    pub(crate) flags: u64,
    pub(crate) pidfd: u64,
    pub(crate) child_tid: u64,
    pub(crate) parent_tid: u64,
    pub(crate) exit_signal: u64,
    pub(crate) stack: u64,
    pub(crate) stack_size: u64,
    pub(crate) tls: u64,
    pub(crate) set_tid: u64,
    pub(crate) set_tid_size: u64,
    pub(crate) cgroup: u64,
}
/// The part of `CloneArgs` that every kernel with clone3 knows.
pub(crate) const CLONE_ARGS_FIRST_BYTES: usize = 64;

pub(crate) const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
pub(crate) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// The whole process group behind the pidfd (Linux 6.9).
pub(crate) const PIDFD_SIGNAL_PROCESS_GROUP: u32 = 1 << 2;
