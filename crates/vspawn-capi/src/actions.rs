//! The file actions of a command, which its child carries out in the order of the calls as with
//! posix_spawn, and the child's scheduling.

use std::ffi::{c_char, c_int};

use libc::mode_t;

use crate::command::{Command, change};
use crate::failure::Failure;
use crate::pointers::{array, string};

/// Lets the child open a file as its descriptor target, with flags and mode as for open.
///
/// This and the next six functions add to one list, which the child carries out in order, after the
/// descriptors of vspawn_command_fd and the standard streams are in place. All descriptor numbers
/// are the child's. path: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_open(
    command: *mut Command,
    target: c_int,
    path: *const c_char,
    flags: c_int,
    mode: mode_t,
) -> c_int {
    change!(command, string(path, "path").map(|path| command.open(target, path, flags, mode)))
}

/// Closes one descriptor of the child. It is no error if the descriptor is already closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_close(command: *mut Command, fd: c_int) -> c_int {
    change!(command, Ok(command.close(fd)))
}

/// Closes all descriptors of the child from this number on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_close_from(command: *mut Command, first: c_int) -> c_int {
    change!(command, Ok(command.close_from(first)))
}

/// Copies a descriptor within the child. If source and target are equal, the descriptor stays open
/// at the exec.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_dup(command: *mut Command, source: c_int, target: c_int) -> c_int {
    change!(command, Ok(command.dup(source, target)))
}

/// Changes the child's directory at this point in the list: relative paths of later actions start
/// there. directory: copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_chdir(command: *mut Command, directory: *const c_char) -> c_int {
    change!(command, string(directory, "directory").map(|directory| command.chdir(directory)))
}

/// Like vspawn_command_chdir, but changes to the directory that a descriptor of the child refers
/// to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_fchdir(command: *mut Command, fd: c_int) -> c_int {
    change!(command, Ok(command.fchdir(fd)))
}

/// Makes the child's process group the foreground group of a terminal, like tcsetpgrp. terminal: a
/// descriptor of the child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_foreground(command: *mut Command, terminal: c_int) -> c_int {
    change!(command, Ok(command.foreground(terminal)))
}

/// Sets the scheduling policy (SCHED_*) and its priority.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_scheduler(command: *mut Command, policy: c_int, priority: c_int) -> c_int {
    change!(command, Ok(command.scheduler(policy, priority)))
}

/// Restricts the child to these CPUs. cpus: an array of count numbers, copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_affinity(command: *mut Command, cpus: *const c_int, count: usize) -> c_int {
    change!(command, {
        let cpus = array(cpus, count, "cpus")?;
        if cpus.is_empty() || cpus.iter().any(|cpu| *cpu < 0) {
            return Err(Failure::invalid("restrict a child to no CPU, or to a negative one"));
        }
        Ok(command.affinity(cpus.iter().map(|cpu| *cpu as usize)))
    })
}

/// Prevents the child and its descendants from gaining privileges by an exec (PR_SET_NO_NEW_PRIVS),
/// unless enable is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_no_new_privileges(command: *mut Command, enable: c_int) -> c_int {
    change!(command, Ok(command.no_new_privileges(enable != 0)))
}

/// Sets the child's effective user and group id to the real ones, like POSIX_SPAWN_RESETIDS.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_command_reset_ids(command: *mut Command) -> c_int {
    change!(command, Ok(command.reset_ids()))
}
