//! Raw system calls: no libc function, no errno, no cancellation point. All calls between clone and
//! exec, where memory is shared with a running parent, use only this module.

use crate::arch::{self, Entry};

/// A system call's failure: the errno, as a positive number.
pub(crate) type Errno = i32;

/// Makes a system call.
///
/// # Safety
/// The arguments must be valid for this system call.
#[inline(always)]
pub(crate) unsafe fn call(number: libc::c_long, arguments: [usize; 6]) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    checked(unsafe { arch::call(number, arguments) })
}

/// Turns the kernel's result, where -4095..=-1 is an error, into a `Result`.
#[inline(always)]
fn checked(result: isize) -> Result<usize, Errno> {
    if (-4095..0).contains(&result) { Err(-result as Errno) } else { Ok(result as usize) }
}

/// `syscall!(SYS_close, fd)`: a raw system call with up to six integers or pointers.
macro_rules! syscall {
    ($name:ident) => { syscall!(@ $name, 0, 0, 0, 0, 0, 0) };
    ($name:ident, $a:expr) => { syscall!(@ $name, $a, 0, 0, 0, 0, 0) };
    ($name:ident, $a:expr, $b:expr) => { syscall!(@ $name, $a, $b, 0, 0, 0, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr) => { syscall!(@ $name, $a, $b, $c, 0, 0, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr, $d:expr) => { syscall!(@ $name, $a, $b, $c, $d, 0, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => { syscall!(@ $name, $a, $b, $c, $d, $e, 0) };
    ($name:ident, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        syscall!(@ $name, $a, $b, $c, $d, $e, $f)
    };
    (@ $name:ident, $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        $crate::sys::call(
            libc::$name,
            [$a as usize, $b as usize, $c as usize, $d as usize, $e as usize, $f as usize],
        )
    };
}
pub(crate) use syscall;

/// Makes a clone call whose child starts in `entry(argument)`, on its own stack, and never returns.
///
/// # Safety
/// `number` and `arguments` must be a valid clone or clone3 call. It must give the child a stack
/// that is aligned to 16 bytes, large enough for `entry`, and not used by any other code until the
/// child has left this memory. `entry` must not return.
pub(crate) unsafe fn clone_into(
    number: libc::c_long,
    arguments: [usize; 5],
    entry: Entry,
    argument: *const u8,
) -> Result<usize, Errno> {
    // SAFETY: the caller's promise.
    checked(unsafe { arch::clone_into(number, arguments, entry, argument) })
}

/// A set of signals in the kernel's format: bit N-1 is signal N.
pub(crate) type SignalSet = u64;
/// The number of signals. They are numbered from 1.
pub(crate) const SIGNAL_COUNT: i32 = 64;
/// The size of a set in bytes, which system calls for signals take as an argument.
pub(crate) const SIGNAL_SET_BYTES: usize = size_of::<SignalSet>();

/// Returns the set that contains only this signal.
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
/// The size in bytes of the part of `CloneArgs` that every kernel with clone3 supports.
pub(crate) const CLONE_ARGS_SIZE_VER0: usize = 64;

pub(crate) const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;
pub(crate) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// A flag of pidfd_send_signal that sends the signal to the process group whose leader the pidfd
/// refers to (Linux 6.9).
pub(crate) const PIDFD_SIGNAL_PROCESS_GROUP: u32 = 1 << 2;
