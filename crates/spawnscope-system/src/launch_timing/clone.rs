//! Creates children by raw system calls, without what the C library adds: it runs fork handlers and
//! blocks signals.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::mappings::Memory;
use crate::arch::{Entry, clone_into, vfork_call};
use crate::process::reap;

const STACK_BYTES: usize = 64 << 10;
/// From linux/sched.h. Not every libc defines it.
const CLONE_CLEAR_SIGHAND: u64 = 0x1_0000_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloneCall {
    /// vfork, or what libc makes of it on architectures without this call.
    Vfork,
    Clone {
        flags: c_int,
    },
    /// clone3 with CLONE_VM, CLONE_VFORK, CLONE_PIDFD and CLONE_CLEAR_SIGHAND.
    Clone3,
}

/// The stack of a child that may share its parent's memory.
#[derive(Debug)]
pub struct ChildStack(Memory);

impl ChildStack {
    pub fn map() -> io::Result<ChildStack> {
        Memory::map(STACK_BYTES).map(ChildStack)
    }

    /// Creates a child that runs `entry(argument)`, and returns its pid.
    ///
    /// # Safety
    /// `entry` may only make system calls, and `argument` must outlive the child. If the child
    /// shares memory without CLONE_VFORK, which makes the parent wait for its exec, this stack must
    /// not be used again before the child has ended.
    pub unsafe fn start(&self, call: CloneCall, entry: Entry, argument: *const u8) -> io::Result<c_int> {
        let mut pidfd = -1i32;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD;
        // struct clone_args of clone(2).
        let clone3: [u64; 8] = [
            flags as u64 | CLONE_CLEAR_SIGHAND,
            (&raw mut pidfd) as u64,
            0,
            0,
            libc::SIGCHLD as u64,
            self.0.start() as u64,
            STACK_BYTES as u64,
            0,
        ];
        let (number, arguments) = match call {
            CloneCall::Vfork => vfork_call(),
            CloneCall::Clone { flags } => (libc::SYS_clone, [(flags | libc::SIGCHLD) as usize, self.0.end() as usize]),
            CloneCall::Clone3 => (libc::SYS_clone3, [clone3.as_ptr() as usize, size_of_val(&clone3)]),
        };
        // SAFETY: the child has its own stack, or the parent waits and does not read below its
        // stack pointer. The caller guarantees the rest.
        let outcome = unsafe { clone_into(number, arguments, entry, argument) };
        if pidfd >= 0 {
            // SAFETY: the descriptor is ours, and not used elsewhere.
            unsafe { libc::close(pidfd) };
        }
        match c_int::try_from(outcome) {
            Ok(pid) if pid > 0 => Ok(pid),
            _ => Err(io::Error::from_raw_os_error(-outcome as i32)),
        }
    }
}

/// Forks. The child runs `work`, which may only make system calls, and exits with the status that
/// `work` returns.
pub fn fork(work: impl FnOnce() -> c_int) -> io::Result<c_int> {
    // SAFETY: as for fork; the child only makes system calls.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: exits at once; none of the parent's code runs in the child.
        0 => unsafe { libc::_exit(work()) },
        pid => Ok(pid as c_int),
    }
}

/// A copy of this process that shares its pages and does nothing. It ends when this value is
/// dropped, or when this process ends.
#[derive(Debug)]
pub struct IdleCopy {
    pid: c_int,
    /// The only write end of a pipe. The copy ends when it is closed.
    lifeline: OwnedFd,
}

impl IdleCopy {
    pub fn start() -> io::Result<IdleCopy> {
        let (reader, lifeline) = pipe2(OFlag::O_CLOEXEC)?;
        let pid = fork(|| {
            let mut byte = 0u8;
            // SAFETY: plain system calls on the child's own copies of the descriptors; `byte` has
            // room for one byte.
            let length = unsafe {
                libc::close(lifeline.as_raw_fd());
                libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1)
            };
            c_int::from(length != 0)
        })?;
        Ok(IdleCopy { pid, lifeline })
    }

    pub fn end(self) -> io::Result<c_int> {
        drop(self.lifeline);
        reap(self.pid).map(|(_, status)| status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::call;

    unsafe extern "C" fn exit_with(status: *const u8) -> ! {
        loop {
            // SAFETY: a plain system call; the parent keeps the status.
            unsafe { call(libc::SYS_exit, [usize::from(*status), 0, 0]) };
        }
    }

    #[test]
    fn each_call_creates_a_child_that_runs_the_entry() {
        let stack = ChildStack::map().unwrap();
        let suspended = libc::CLONE_VM | libc::CLONE_VFORK;
        let calls =
            [CloneCall::Vfork, CloneCall::Clone { flags: 0 }, CloneCall::Clone { flags: suspended }, CloneCall::Clone3];
        for (number, call) in calls.into_iter().enumerate() {
            let status = number as u8;
            // SAFETY: the child only exits, and is waited for.
            let child = unsafe { stack.start(call, exit_with, &raw const status) }.unwrap();
            assert_eq!(reap(child).unwrap(), (child, i32::from(status) << 8), "{call:?}");
        }
    }

    #[test]
    fn a_copy_lives_until_it_is_ended() {
        let copy = IdleCopy::start().unwrap();
        let pid = copy.pid;
        // SAFETY: a plain system call, which does not wait.
        let ended = unsafe { libc::waitpid(pid, std::ptr::null_mut(), libc::WNOHANG) };
        assert_eq!(ended, 0);
        assert_eq!(copy.end().unwrap(), 0);
        assert!(reap(pid).is_err());
    }
}
