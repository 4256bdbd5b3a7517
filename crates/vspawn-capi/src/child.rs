//! The child handle: waiting, signals, and the parent's ends of its pipes.

use std::ffi::c_int;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use libc::pid_t;

use crate::entry::{entry, entry_or};
use crate::failure::{Failure, Stage};
use crate::out_of_memory;
use crate::pointers::{borrow, free, null, out_handle};

/// A child process. Used by one thread at a time; to wait in one thread and signal in another, use
/// the pidfd.
pub struct Child(pub(crate) vspawn_core::Child);

/// Starts a process and stores its handle in `child`.
///
/// # Safety
/// `child` is NULL or room for a pointer.
pub(crate) unsafe fn start_child(
    child: *mut *mut Child,
    spawn: impl FnOnce() -> Result<vspawn_core::Child, Failure>,
) -> c_int {
    entry(|| {
        // SAFETY: the caller's promise.
        let target = unsafe { out_handle(child, "child") }?;
        out_of_memory::reserve(0)?;
        *target = Box::into_raw(Box::new(Child(spawn()?)));
        Ok(())
    })
}

/// # Safety
/// `child` is NULL or a live handle that no other thread uses.
unsafe fn borrow_mut<'a>(child: *mut Child) -> Result<&'a mut vspawn_core::Child, Failure> {
    // SAFETY: the caller's promise.
    let child = unsafe { child.as_mut() }.ok_or_else(|| null("child"))?;
    Ok(&mut child.0)
}

/// # Safety
/// As for `borrow_mut`.
unsafe fn with_child(child: *mut Child, body: impl FnOnce(&mut vspawn_core::Child) -> Result<(), Failure>) -> c_int {
    // SAFETY: the caller's promise.
    entry(|| body(unsafe { borrow_mut(child) }?))
}

/// # Safety
/// `status` is NULL or room for an int.
unsafe fn store_status(status: *mut c_int, value: ExitStatus) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    if let Some(target) = unsafe { status.as_mut() } {
        *target = value.into_raw();
    }
    Ok(())
}

/// Returns the process id, which is not reused before the child has been waited for; -1 with errno
/// EINVAL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_pid(child: *const Child) -> pid_t {
    // SAFETY: a handle or NULL.
    entry_or(-1, || Ok(unsafe { borrow(child, "child") }?.0.id() as pid_t))
}

/// Returns the pidfd, which becomes readable for poll when the child has ended. The pidfd belongs
/// to the handle: the caller must not close it. Returns -1 with errno EINVAL for NULL, and with
/// EBADF if the kernel gave no pidfd (the table of descriptors was full, or a seccomp filter
/// refuses pidfds). All other functions work without a pidfd, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_pidfd(child: *const Child) -> c_int {
    entry_or(-1, || {
        // SAFETY: a handle or NULL.
        let pidfd = unsafe { borrow(child, "child") }?.0.pidfd();
        pidfd
            .map(|pidfd| pidfd.as_raw_fd())
            .ok_or_else(|| Failure::new(Stage::Prepare, libc::EBADF, "return a pidfd: the kernel gave none"))
    })
}

/// # Safety
/// As for `borrow_mut`.
unsafe fn take_end(child: *mut Child, take: impl FnOnce(&mut vspawn_core::Child) -> Option<OwnedFd>) -> c_int {
    entry_or(-1, || {
        // SAFETY: the caller's promise.
        take(unsafe { borrow_mut(child) }?).map(IntoRawFd::into_raw_fd).ok_or_else(|| {
            let action = "take an end of a pipe: the stream is not piped, or its end was taken before";
            Failure::new(Stage::Prepare, libc::EBADF, action)
        })
    })
}

/// Takes the parent's end of the child's piped standard input. Returns a descriptor, close-on-exec,
/// that the caller then owns; -1 with errno EBADF if the stream is not piped or was taken before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_take_stdin(child: *mut Child) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { take_end(child, |child| child.stdin.take().map(OwnedFd::from)) }
}

/// Takes the parent's end of the child's piped standard output. See vspawn_child_take_stdin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_take_stdout(child: *mut Child) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { take_end(child, |child| child.stdout.take().map(OwnedFd::from)) }
}

/// Takes the parent's end of the child's piped standard error. See vspawn_child_take_stdin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_take_stderr(child: *mut Child) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { take_end(child, |child| child.stderr.take().map(OwnedFd::from)) }
}

/// Waits for the exec of a child that vspawn_command_spawn_nowait has started. Returns 0, or the
/// errno if the exec or a step before it failed; the child has then been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_started(child: *mut Child) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { with_child(child, |child| Ok(child.started()?)) }
}

/// Waits until the child has ended. Closes its piped standard input first, unless that was taken.
///
/// status: receives what waitpid stores (for WIFEXITED and similar macros); may be NULL.
/// Returns ECHILD if the parent ignores SIGCHLD or other code has waited for the child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_wait(child: *mut Child, status: *mut c_int) -> c_int {
    // SAFETY: a handle or NULL; room for the status or NULL.
    unsafe { with_child(child, |child| store_status(status, child.wait()?)) }
}

/// Returns EAGAIN while the child runs. Otherwise like vspawn_child_wait, but standard input stays
/// open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_try_wait(child: *mut Child, status: *mut c_int) -> c_int {
    // SAFETY: as above.
    unsafe {
        with_child(child, |child| {
            store_status(
                status,
                child.try_wait()?.ok_or_else(|| {
                    Failure::new(Stage::Wait, libc::EAGAIN, "return the status of a child that is still running")
                })?,
            )
        })
    }
}

/// Waits for at most this time. Returns ETIMEDOUT if the child is still running then. Otherwise
/// like vspawn_child_wait, but standard input stays open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_wait_timeout(child: *mut Child, milliseconds: u32, status: *mut c_int) -> c_int {
    let timeout = Duration::from_millis(milliseconds.into());
    // SAFETY: as above.
    unsafe {
        with_child(child, |child| match child.wait_timeout(timeout)? {
            Some(end) => store_status(status, end),
            None => {
                let action = format!("wait for the child's end within {timeout:?}");
                Err(Failure::new(Stage::Timeout, libc::ETIMEDOUT, &action))
            }
        })
    }
}

/// Kills the child with SIGKILL. Does nothing if the child has been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_kill(child: *mut Child) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { with_child(child, |child| Ok(child.kill()?)) }
}

/// Sends the child a signal. Does nothing if the child has been waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_signal(child: *mut Child, signal: c_int) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { with_child(child, |child| Ok(child.signal(signal)?)) }
}

/// Sends a signal to the child's process group. Returns EINVAL unless the child was started with
/// its own group or session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_signal_group(child: *mut Child, signal: c_int) -> c_int {
    // SAFETY: a handle or NULL.
    unsafe { with_child(child, |child| Ok(child.signal_group(signal)?)) }
}

/// Kills the child and all its descendants.
///
/// descendants: receives the number of descendants; may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_kill_tree(child: *mut Child, descendants: *mut usize) -> c_int {
    // SAFETY: a handle or NULL; room for a number or NULL.
    unsafe {
        with_child(child, |child| {
            let killed = child.kill_tree()?;
            if let Some(target) = descendants.as_mut() {
                *target = killed;
            }
            Ok(())
        })
    }
}

/// Frees a handle, its pidfd and the ends of its pipes that were not taken. Neither kills the child
/// nor waits for it: a child that was not waited for becomes a zombie when it ends.
///
/// child: consumed; NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_child_free(child: *mut Child) {
    // SAFETY: a handle that the caller gives up, or NULL.
    unsafe { free(child) };
}
