//! The requests of ptrace(2) that this module makes, and their options.

use std::ffi::c_int;
use std::fs::File;
use std::io;
use std::ops::BitOr;
use std::os::unix::fs::FileExt;

use spawnscope_data::event::Pid;

/// Options of a tracee, most of which select events to be reported in addition to signals and
/// group-stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options(c_int);

impl Options {
    /// Reports new threads and processes (`Stop::Created`), which are then traced with the same
    /// options.
    pub const CREATION: Options =
        Options(libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACECLONE);
    /// Reports executed programs (`Stop::Exec`).
    pub const EXEC: Options = Options(libc::PTRACE_O_TRACEEXEC);
    /// Reports the end of a thread while the thread can still be examined (`Stop::Exiting`).
    pub const EXITING: Options = Options(libc::PTRACE_O_TRACEEXIT);
    /// Makes the stops of `Resume::ToSystemCall` distinguishable from SIGTRAP (`Stop::SystemCall`).
    /// Required for that request.
    pub const SYSTEM_CALLS: Options = Options(libc::PTRACE_O_TRACESYSGOOD);
    /// Kills the tracees if the tracer exits. Without it, they continue untraced.
    pub const KILL_ON_EXIT: Options = Options(libc::PTRACE_O_EXITKILL);
}

impl BitOr for Options {
    type Output = Options;

    fn bitor(self, other: Options) -> Options {
        Options(self.0 | other.0)
    }
}

/// How a stopped thread continues. The number is a signal to deliver, or 0 for none. It is ignored
/// unless the thread is stopped by `Stop::Signal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The thread runs until its next event (PTRACE_CONT).
    Continue(i32),
    /// The thread runs until its next event or the next entry or exit of a system call
    /// (PTRACE_SYSCALL).
    ToSystemCall(i32),
    /// The thread stays stopped, and an event is reported when SIGCONT continues it
    /// (PTRACE_LISTEN). Only valid in `Stop::Group`.
    Listen,
    /// The thread continues untraced (PTRACE_DETACH).
    Detach(i32),
}

/// Starts to trace a thread. Fails with EPERM if the thread is already traced, or if the tracer may
/// not trace it.
pub(super) fn seize(thread: Pid, options: Options) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, thread, options.0)
}

/// Stops a running thread. Has no effect on a thread that is about to stop anyway.
pub(super) fn interrupt(thread: Pid) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0)
}

pub(super) fn resume(thread: Pid, how: Resume) -> io::Result<()> {
    match how {
        Resume::Continue(signal) => request(libc::PTRACE_CONT, thread, signal),
        Resume::ToSystemCall(signal) => request(libc::PTRACE_SYSCALL, thread, signal),
        Resume::Listen => request(libc::PTRACE_LISTEN, thread, 0),
        Resume::Detach(signal) => request(libc::PTRACE_DETACH, thread, signal),
    }
}

/// Returns the message of the event that the thread is stopped by; `None` if the thread was killed
/// in the meantime.
pub(super) fn message(thread: Pid) -> Option<u64> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the request writes one unsigned long to `message`.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread.0, 0usize, &raw mut message) };
    (result == 0).then_some(message)
}

/// Writes words to the memory of a stopped thread, regardless of the memory's protection. Some
/// kernels permit this only by ptrace (`proc_mem.force_override`).
pub(super) fn write(thread: Pid, address: u64, bytes: &[u8]) -> io::Result<()> {
    let memory = File::options().write(true).open(format!("/proc/{}/mem", thread.0));
    if memory.is_ok_and(|memory| memory.write_all_at(bytes, address).is_ok()) {
        return Ok(());
    }
    let (words, _) = bytes.as_chunks();
    (address..)
        .step_by(size_of::<u64>())
        .zip(words)
        .try_for_each(|(at, word)| poke(thread, at, u64::from_ne_bytes(*word)))
}

/// Writes a word to the memory of a stopped thread, regardless of the memory's protection.
pub(super) fn poke(thread: Pid, address: u64, word: u64) -> io::Result<()> {
    // SAFETY: the request does not access our memory.
    let result = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, thread.0, address, word) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The type of a request's number, which depends on the C library.
#[cfg(target_env = "musl")]
type Request = c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn request(request: Request, thread: Pid, data: c_int) -> io::Result<()> {
    // SAFETY: with these requests, the kernel does not access our memory.
    let result = unsafe { libc::ptrace(request, thread.0, 0usize, data as usize) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
