//! Pseudo-terminals for C, as descriptors that the caller owns.

use std::ffi::{c_int, c_ushort};
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use vspawn_core::pty::{Pty, Size};

use crate::child::{Child, start_child};
use crate::command::Command;
use crate::entry::{entry, entry_or};
use crate::failure::Failure;
use crate::pointers::borrow;

/// Wraps a pseudo-terminal that the caller still owns.
fn borrow_pty(pty: c_int) -> Result<ManuallyDrop<Pty>, Failure> {
    if pty < 0 {
        return Err(Failure::invalid(&format!("use descriptor {pty} as a pseudo-terminal")));
    }
    // SAFETY: not negative, and never closed by us.
    Ok(ManuallyDrop::new(Pty::from(unsafe { OwnedFd::from_raw_fd(pty) })))
}

/// Creates a pseudo-terminal of this size. Returns a descriptor, close-on-exec, that the caller
/// owns and closes; -1 with errno on failure. Bytes written to the descriptor are typed on the
/// terminal; reads return what the children print, and fail with EIO when no process has the
/// terminal open any more.
#[unsafe(no_mangle)]
pub extern "C" fn vspawn_pty_open(rows: c_ushort, columns: c_ushort) -> c_int {
    entry_or(-1, || Ok(Pty::open(Size::new(rows, columns))?.into_raw_fd()))
}

/// Sets the size of a terminal. If it changes, the foreground processes get SIGWINCH. pty:
/// borrowed.
#[unsafe(no_mangle)]
pub extern "C" fn vspawn_pty_resize(pty: c_int, rows: c_ushort, columns: c_ushort) -> c_int {
    entry(|| Ok(borrow_pty(pty)?.resize(Size::new(rows, columns))?))
}

/// Starts a command in a session of its own, with a controlling terminal, without a fork. The
/// terminal becomes each standard stream that the command does not set.
///
/// pty: from vspawn_pty_open; borrowed. child: as for vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_pty_spawn(pty: c_int, command: *const Command, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; room for a pointer or NULL.
    unsafe {
        start_child(child, || {
            let command = borrow(command, "command")?;
            command.reserve_start(command.changes_environment())?;
            Ok(borrow_pty(pty)?.spawn(&command.0)?)
        })
    }
}
