//! Starts a command once, or prepares it to be started many times.

use std::ffi::c_int;

use crate::child::{Child, start_child};
use crate::command::Command;
use crate::entry::entry;
use crate::pointers::{array, borrow, free, null, out_handle};

/// A prepared command. It can be spawned any number of times, by any number of threads at once.
/// Environment, PATH and arguments are those at the time of the preparation.
pub struct Prepared(vspawn_core::Prepared);

/// Starts the command. Returns 0 after the child's exec, or the errno if the exec or a step before
/// it failed; no process remains then.
///
/// child: receives a handle that the caller owns and passes to vspawn_child_free; NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_spawn(command: *const Command, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; room for a pointer or NULL.
    unsafe {
        start_child(child, || {
            let command = borrow(command, "command")?;
            command.reserve_start(command.changes_environment())?;
            Ok(command.0.spawn()?)
        })
    }
}

/// Starts the command and returns at once, before the child's exec. If the child fails before its
/// exec, vspawn_child_started and the waits return the error. Returns EINVAL for a command that
/// changes user or group, and for VSPAWN_MECHANISM_FORK.
///
/// child: as for vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_spawn_nowait(command: *const Command, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; room for a pointer or NULL.
    unsafe {
        start_child(child, || {
            let command = borrow(command, "command")?;
            command.reserve_start(true)?;
            Ok(command.0.prepare()?.spawn_nowait()?)
        })
    }
}

/// Prepares a command to be spawned many times.
///
/// command: borrowed for the call. prepared: receives a handle that the caller owns and passes to
/// vspawn_prepared_free; NULL on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_prepare(command: *const Command, prepared: *mut *mut Prepared) -> c_int {
    entry(|| {
        // SAFETY: room for a pointer, or NULL.
        let target = unsafe { out_handle(prepared, "prepared") }?;
        // SAFETY: a handle or NULL.
        let command = unsafe { borrow(command, "command") }?;
        command.reserve_start(true)?;
        *target = Box::into_raw(Box::new(Prepared(command.0.prepare()?)));
        Ok(())
    })
}

/// Starts a child of a prepared command. prepared: borrowed. child: as for vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_prepared_spawn(prepared: *const Prepared, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; room for a pointer or NULL.
    unsafe { start_child(child, || borrow(prepared, "prepared").and_then(|prepared| Ok(prepared.0.spawn()?))) }
}

/// Like vspawn_command_spawn_nowait, for a prepared command. prepared: borrowed. child: as for
/// vspawn_command_spawn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_prepared_spawn_nowait(prepared: *const Prepared, child: *mut *mut Child) -> c_int {
    // SAFETY: a handle or NULL; room for a pointer or NULL.
    unsafe { start_child(child, || borrow(prepared, "prepared").and_then(|prepared| Ok(prepared.0.spawn_nowait()?))) }
}

/// Starts a pipeline: each command reads the output of the previous one. The first command sets its
/// own standard input, the last its standard output. If the standard error of a command is
/// VSPAWN_STDIO_STDOUT, the next command reads that, too.
///
/// commands: as many handles as count; borrowed for the call. children: room for as many handles,
/// which the caller owns and passes to vspawn_child_free. On failure, all are NULL, and the
/// commands that were already started have been killed and waited for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_pipeline_spawn(
    commands: *const *const Command,
    count: usize,
    children: *mut *mut Child,
) -> c_int {
    entry(|| {
        if children.is_null() {
            return Err(null("children"));
        }
        // SAFETY: the caller's promise.
        let (commands, children) = unsafe {
            children.write_bytes(0, count);
            (array(commands, count, "commands")?, std::slice::from_raw_parts_mut(children, count))
        };
        let mut pipeline = vspawn_core::Pipeline::new();
        for command in commands {
            // SAFETY: a handle or NULL.
            let command = unsafe { borrow(*command, "command") }?;
            command.reserve_start(command.changes_environment())?;
            pipeline = pipeline.then(command.0.clone());
        }
        for (child, started) in children.iter_mut().zip(pipeline.spawn()?.children) {
            *child = Box::into_raw(Box::new(Child(started)));
        }
        Ok(())
    })
}

/// Frees a prepared command. Its children stay valid. prepared: consumed; NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_prepared_free(prepared: *mut Prepared) {
    // SAFETY: a handle that the caller gives up, or NULL.
    unsafe { free(prepared) };
}
