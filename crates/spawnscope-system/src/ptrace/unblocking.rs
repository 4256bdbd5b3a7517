//! Stops a new process when it unblocks its signals. C libraries and interpreters block all signals
//! around the creation of a process, and the child unblocks them just before its exec. A signal
//! that is pending meanwhile is delivered at that moment, which the tracer sees; the many calls
//! before it need no stops. Without its tracer, the process discards the signal (`entry::SIGNAL`).
//!
//! A process that sets the action of the signal to the default discards a pending one. The signal
//! must therefore be sent after that.

use std::io;

use super::entry::SIGNAL;
use super::request::poke;
use spawnscope_data::event::Pid;

/// From `linux/ptrace.h`. Not every C library defines them.
const PTRACE_GETSIGMASK: libc::c_int = 0x420a;
const PTRACE_SETSIGMASK: libc::c_int = 0x420b;
/// `si_code` of a signal sent by tgkill(2).
const SI_TKILL: libc::c_int = -6;
/// The signals that a process can block, without those that the C library reserves for itself, and
/// without those that instructions cause: libuv leaves these unblocked.
const BLOCKABLE: u64 = (bit(32) - 1) & !bit(libc::SIGKILL) & !bit(libc::SIGSTOP) & !CAUSED_BY_INSTRUCTIONS;
const CAUSED_BY_INSTRUCTIONS: u64 = bit(libc::SIGILL)
    | bit(libc::SIGTRAP)
    | bit(libc::SIGABRT)
    | bit(libc::SIGBUS)
    | bit(libc::SIGFPE)
    | bit(libc::SIGSEGV)
    | bit(libc::SIGSYS);

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Whether this system call concerns the action of a later signal. Processes set the actions of all
/// signals in ascending order.
pub fn passes_signal(number: libc::c_long, arguments: &[u64; 6]) -> bool {
    number == libc::SYS_rt_sigaction && arguments[0] > u64::from(SIGNAL)
}

pub fn sets_signal(number: libc::c_long, arguments: &[u64; 6]) -> bool {
    number == libc::SYS_rt_sigaction && arguments[0] == u64::from(SIGNAL) && arguments[1] != 0
}

pub fn changes_mask(number: libc::c_long, arguments: &[u64; 6]) -> bool {
    number == libc::SYS_rt_sigprocmask && arguments[1] != 0
}

/// Returns where this system call stores the mask of blocked signals, if it does nothing else.
/// posix_spawn of glibc begins like this.
pub fn mask_query(number: libc::c_long, arguments: &[u64; 6]) -> Option<u64> {
    let is_query = number == libc::SYS_rt_sigprocmask && arguments[1] == 0;
    Some(arguments[2]).filter(|address| is_query && *address != 0)
}

pub(super) fn signal_mask(thread: Pid) -> io::Result<u64> {
    let mut mask = 0u64;
    // SAFETY: the request writes one mask of the kernel's size, 8 bytes, to `mask`.
    let result = unsafe { libc::ptrace(PTRACE_GETSIGMASK as _, thread.0, size_of::<u64>(), &raw mut mask) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(mask) }
}

fn set_signal_mask(thread: Pid, mask: u64) {
    // SAFETY: the request reads one mask of the kernel's size, 8 bytes. It fails if the thread was
    // killed.
    unsafe { libc::ptrace(PTRACE_SETSIGMASK as _, thread.0, size_of::<u64>(), &raw const mask) };
}

pub(super) fn is_blocked(thread: Pid) -> io::Result<bool> {
    Ok(signal_mask(thread)? & bit(i32::from(SIGNAL)) != 0)
}

pub fn blocks_all_signals(thread: Pid) -> bool {
    signal_mask(thread).is_ok_and(|mask| mask & BLOCKABLE == BLOCKABLE)
}

/// Whether a stopped thread does not block the signal, or blocks all, which it will unblock before
/// its exec.
pub fn passes_through(thread: Pid) -> bool {
    signal_mask(thread).is_ok_and(|mask| mask & bit(i32::from(SIGNAL)) == 0 || mask & BLOCKABLE == BLOCKABLE)
}

/// Makes a stopped process that blocks all signals stop by a signal when it unblocks them. Returns
/// whether this was possible.
#[must_use]
pub fn stop_at_unblocking(process: Pid) -> bool {
    // SAFETY: a plain system call. The number of a process is also that of its first thread.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, process.0, process.0, libc::c_int::from(SIGNAL)) };
    result == 0
}

/// Like `stop_at_unblocking`, for a process that leaves a `mask_query`, and will set the actions of
/// all signals in the mask. The signal is removed from the mask that the process has stored at
/// `address`, so that the process does not set its action. The exec will.
#[must_use]
pub fn stop_at_unblocking_after_query(process: Pid, address: u64) -> bool {
    let Ok(mask) = signal_mask(process) else { return false };
    poke(process, address, mask & !bit(i32::from(SIGNAL))).is_ok() && stop_at_unblocking(process)
}

/// Whether a thread stopped by `signal` is at the point for which `stop_at_unblocking` was called.
/// The signal must then not be delivered.
pub fn is_unblocking(thread: Pid, signal: i32) -> bool {
    // SAFETY: all zeroes is a valid `siginfo_t`, and the request writes one.
    let information = unsafe {
        let mut information: libc::siginfo_t = std::mem::zeroed();
        (libc::ptrace(libc::PTRACE_GETSIGINFO, thread.0, 0usize, &raw mut information) == 0).then_some(information)
    };
    signal == i32::from(SIGNAL) && information.is_some_and(|information| information.si_code == SI_TKILL)
}

/// The signals that a process blocks, while the tracer has it receive a pending signal.
#[derive(Clone, Copy, Debug)]
pub struct BlockedSignals(u64);

impl BlockedSignals {
    /// For a stopped process that has not unblocked its signals after `stop_at_unblocking`:
    /// unblocks the signal, so that the process stops by it when it is resumed. `None` if the
    /// process does not block it.
    #[must_use]
    pub fn unblock(process: Pid) -> Option<BlockedSignals> {
        let mask = signal_mask(process).ok().filter(|mask| mask & bit(i32::from(SIGNAL)) != 0)?;
        // The pending signal may have been discarded. A second one makes sure that the process
        // stops.
        if !stop_at_unblocking(process) {
            return None;
        }
        set_signal_mask(process, mask & !bit(i32::from(SIGNAL)));
        Some(BlockedSignals(mask))
    }

    /// Blocks the signals again. The process is stopped by the signal.
    pub fn restore(self, process: Pid) {
        set_signal_mask(process, self.0);
    }
}
