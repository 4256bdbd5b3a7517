//! The hooks of the exec functions that take an array of arguments.

use libc::{c_char, c_int};

use crate::hooks::{StringArray, real};
use crate::in_place;
use crate::plan::{Plan, Start};
use crate::redirect::AppliedRedirections;
use crate::search::find;
use crate::settings::{Counter, count};
use crate::shell::is_named_as_shell;
use crate::strings::{PathBuffer, base_name, bytes, errno, set_errno};

unsafe extern "C" {
    static environ: StringArray;
}

/// Returns the environment of this process.
pub fn own_environment() -> StringArray {
    // SAFETY: libc's variable. Another thread may change it during the exec, as with every exec function.
    unsafe { environ }
}

/// Executes the program of a `sh -c` that needs no shell. If this function returns, the caller has to call the real function.
///
/// # Safety
/// The arguments are valid for `execve`.
#[inline(never)]
pub unsafe fn skip_shell(path: *const c_char, argv: StringArray, environment: StringArray) {
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
        unsafe { real::execve(plan.program(), plan.arguments(), plan.environment()) };
        redirected.undo();
    }
    count(Counter::Failed);
}

/// Like `skip_shell`, for a shell that is searched for in PATH.
///
/// # Safety
/// The arguments are valid for `execvpe`.
pub unsafe fn skip_searched_shell(file: *const c_char, argv: StringArray, environment: StringArray) {
    let mut path = PathBuffer::new();
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(path) = find_shell(file, &mut path) {
            skip_shell(path, argv, environment);
        }
    }
}

/// Finds a shell as `execvp` does. Returns `None` if `file` is not a shell's name, or is not found.
///
/// # Safety
/// `file` is NULL or a C string.
pub unsafe fn find_shell(file: *const c_char, path: &mut PathBuffer) -> Option<*const c_char> {
    // SAFETY: as the caller promises; PATH is read as `execvp` reads it.
    unsafe {
        if file.is_null() || !is_named_as_shell(file) {
            return None;
        }
        find_program(file, path)
    }
}

/// Finds a program as `execvp` does.
unsafe fn find_program(file: *const c_char, path: &mut PathBuffer) -> Option<*const c_char> {
    // SAFETY: `file` is a C string; PATH is read as `execvp` reads it.
    unsafe {
        let name = bytes(file);
        if name.contains(&b'/') {
            return Some(file);
        }
        let directories = libc::getenv(c"PATH".as_ptr());
        let directories = (!directories.is_null()).then(|| bytes(directories));
        find(name, directories, path).then(|| path.as_ptr())
    }
}

/// Like `in_place::replace_program`, for a program that is searched for in PATH.
unsafe fn replace_searched_program(file: *const c_char, argv: StringArray, environment: StringArray) {
    let before = errno();
    let mut path = PathBuffer::new();
    // SAFETY: the arguments are those of `execvp`.
    unsafe {
        let path = find_program(file, &mut path);
        set_errno(before);
        if let Some(path) = path.filter(|path| in_place::is_candidate(*path)) {
            in_place::replace_program(path, argv, environment);
        }
    }
}

/// Skips the shell of an exec, or does the work of a known program. If this function returns, the caller has to call the real function.
unsafe fn intercept(path: *const c_char, argv: StringArray, environment: StringArray) {
    if path.is_null() {
        return;
    }
    // SAFETY: the arguments are those of `execve`.
    unsafe {
        // This check saves all other execs the large buffers of `skip_shell` on the stack.
        if is_named_as_shell(path) {
            skip_shell(path, argv, environment);
        } else if in_place::is_candidate(path) {
            in_place::replace_program(path, argv, environment);
        }
    }
}

/// Like `intercept`, for a program that is searched for in PATH.
unsafe fn intercept_searched(file: *const c_char, argv: StringArray, environment: StringArray) {
    if file.is_null() {
        return;
    }
    // SAFETY: the arguments are those of `execvpe`.
    unsafe {
        if is_named_as_shell(file) {
            skip_searched_shell(file, argv, environment);
        } else if in_place::is_known(base_name(bytes(file))) {
            replace_searched_program(file, argv, environment);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: *const c_char, argv: StringArray, environment: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        intercept(path, argv, environment);
        real::execve(path, argv, environment)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: *const c_char, argv: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        intercept(path, argv, own_environment());
        real::execv(path, argv)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(file: *const c_char, argv: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        intercept_searched(file, argv, own_environment());
        real::execvp(file, argv)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(file: *const c_char, argv: StringArray, environment: StringArray) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        intercept_searched(file, argv, environment);
        real::execvpe(file, argv, environment)
    }
}
