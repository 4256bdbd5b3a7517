//! The hooks of the exec functions that take an array of arguments.

use libc::{c_char, c_int};

use crate::hooks::real;
use crate::in_place;
use crate::plan::{Plan, Start};
use crate::preload::with_environment;
use crate::program::find;
use crate::redirect::AppliedRedirections;
use crate::settings::{Counter, count};
use crate::shell::is_named_as_shell;
use crate::strings::{PathBuffer, StringArray, bytes, errno, set_errno};

unsafe extern "C" {
    static environ: StringArray;
}

pub fn own_environment() -> StringArray {
    // SAFETY: libc's variable. Another thread may change it during the exec, as with every exec
    // function.
    unsafe { environ }
}

/// Executes the program of a `sh -c` that needs no shell. If this function returns, the caller has
/// to call the real function.
///
/// # Safety
/// The arguments are valid for `execve`.
#[inline(never)]
unsafe fn skip_shell(path: *const c_char, argv: StringArray, environment: StringArray) {
    let before = errno();
    let mut plan = Plan::new();
    // SAFETY: as the caller promises; all that the plan borrows outlives it.
    if unsafe { plan.decide(path, argv, environment, Start::INHERITED) }.is_none() {
        return;
    }
    count(Counter::Direct);
    if let Some(redirected) = AppliedRedirections::apply(plan.words()) {
        set_errno(before);
        // SAFETY: the plan's arrays end with NULL.
        unsafe {
            with_environment(plan.program(), plan.environment(), |environment| {
                real::execve(plan.program(), plan.arguments(), environment)
            })
        };
        redirected.undo();
    }
    count(Counter::Failed);
}

/// Finds a program as `execvp` does, in the cases in which shells search alike.
///
/// # Safety
/// `file` is a C string.
pub unsafe fn find_program(file: *const c_char, path: &mut PathBuffer) -> Option<*const c_char> {
    // SAFETY: as the caller promises; PATH is read as `execvp` reads it.
    unsafe {
        let name = bytes(file);
        if name.contains(&b'/') {
            return Some(file);
        }
        let before = errno();
        let directories = libc::getenv(c"PATH".as_ptr());
        let directories = (!directories.is_null()).then(|| bytes(directories));
        let is_found = find(name, directories, path);
        set_errno(before);
        is_found.then(|| path.as_ptr())
    }
}

/// Executes a program, or the command of a shell that is not needed. Returns -1 with errno.
///
/// # Safety
/// The arguments are valid for `execve`.
pub unsafe fn execute(path: *const c_char, argv: StringArray, environment: StringArray) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if path.is_null() {
            return real::execve(path, argv, environment);
        }
        intercept(path, argv, environment);
        with_environment(path, environment, |environment| real::execve(path, argv, environment))
    }
}

/// Like `execute`, for a program that is searched for in PATH.
///
/// # Safety
/// The arguments are valid for `execvpe`.
pub unsafe fn execute_searched(file: *const c_char, argv: StringArray, environment: StringArray) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        if file.is_null() {
            return real::execvpe(file, argv, environment);
        }
        let mut path = PathBuffer::new();
        let Some(path) = find_program(file, &mut path) else { return real::execvpe(file, argv, environment) };
        intercept(path, argv, environment);
        with_environment(path, environment, |environment| real::execvpe(file, argv, environment))
    }
}

/// Executes the command of a shell that is not needed, or does the work of a small program. Returns
/// if the program has to be executed.
unsafe fn intercept(path: *const c_char, argv: StringArray, environment: StringArray) {
    // SAFETY: the arguments are valid for `execve`. The check for a shell saves all other execs the
    // large buffers of `skip_shell` on the stack.
    unsafe {
        if is_named_as_shell(path) {
            skip_shell(path, argv, environment);
        } else if in_place::is_candidate(path) {
            in_place::replace_program(path, argv, environment);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: *const c_char, argv: StringArray, environment: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { execute(path, argv, environment) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: *const c_char, argv: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { execute(path, argv, own_environment()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(file: *const c_char, argv: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { execute_searched(file, argv, own_environment()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(file: *const c_char, argv: StringArray, environment: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe { execute_searched(file, argv, environment) }
}
