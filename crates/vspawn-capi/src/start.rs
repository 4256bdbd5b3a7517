//! Starting a command, at once or made ready for many times.

use std::ffi::c_int;

use crate::child::{Child, give};
use crate::command::Command;
use crate::entry::entry;
use crate::pointers::{borrow, free, null};

/// A command made ready: spawned as often as wanted, by any number of threads at once. Environment, PATH and arguments are
/// as they were when it was prepared.
pub struct Prepared(vspawn_core::Prepared);

/// Starts the command; returns after its exec, or with the reason why there is none: no process is left then.
///
/// child: receives a handle that the caller owns and gives to vspawn_child_free; NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_spawn(command: *const Command, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; a place for a pointer or NULL.
    unsafe {
        give(child, || {
            borrow(command, "command").and_then(|command| Ok(command.0.prepare()?.spawn()?))
        })
    }
}

/// Starts the command and returns at once, while the child is on its way to its exec. If it fails on its way,
/// vspawn_child_started and the waits say so. Not for a command that changes user or group, nor for VSPAWN_MECHANISM_FORK.
///
/// child: as for vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_spawn_nowait(command: *const Command, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; a place for a pointer or NULL.
    unsafe {
        give(child, || {
            borrow(command, "command").and_then(|command| Ok(command.0.prepare()?.spawn_nowait()?))
        })
    }
}

/// Makes a command ready to be spawned many times.
///
/// command: borrowed for the call. prepared: receives a handle that the caller owns and gives to vspawn_prepared_free;
/// NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_prepare(command: *const Command, prepared: *mut *mut Prepared) -> c_int {
    entry(|| {
        // SAFETY: a place for a pointer, or NULL.
        let place = unsafe { prepared.as_mut() }.ok_or_else(|| null("prepared"))?;
        *place = std::ptr::null_mut();
        // SAFETY: a handle or NULL.
        let ready = unsafe { borrow(command, "command") }?.0.prepare()?;
        *place = Box::into_raw(Box::new(Prepared(ready)));
        Ok(())
    })
}

/// Starts a child of a prepared command. prepared: borrowed. child: as for vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_prepared_spawn(prepared: *const Prepared, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; a place for a pointer or NULL.
    unsafe {
        give(child, || {
            borrow(prepared, "prepared").and_then(|prepared| Ok(prepared.0.spawn()?))
        })
    }
}

/// As vspawn_command_spawn_nowait. prepared: borrowed. child: as for vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_prepared_spawn_nowait(prepared: *const Prepared, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; a place for a pointer or NULL.
    unsafe {
        give(child, || {
            borrow(prepared, "prepared").and_then(|prepared| Ok(prepared.0.spawn_nowait()?))
        })
    }
}

/// Frees a prepared command. Its children live on. prepared: given up; NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_prepared_free(prepared: *mut Prepared) {
    // SAFETY: a handle that the caller gives up, or NULL.
    unsafe { free(prepared) };
}
