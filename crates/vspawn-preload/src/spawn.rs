//! The spawn hooks. File actions cannot be read, and one that changes the directory would change
//! the search and PWD. So after a process has created such an action for the first time, its spawns
//! with file actions go to the shell.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{c_char, c_int, pid_t, posix_spawn_file_actions_t as Actions, posix_spawnattr_t as Attributes, sigset_t};

use crate::exec::find_program;
use crate::hooks::real;
use crate::plan::{Plan, Redirections, Start};
use crate::preload::with_environment;
use crate::program::is_program;
use crate::redirect::{ErrorDestination, add_file_actions, error_destination};
use crate::settings::{Counter, count};
use crate::shell::{Shell, is_named_as_shell};
use crate::strings::{PathBuffer, StringArray, errno, set_errno};

/// Whether this process has created a file action that changes the directory.
static CHANGES_DIRECTORY: AtomicBool = AtomicBool::new(false);

/// The arguments of `posix_spawn`, except the pid.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub path: *const c_char,
    pub actions: *const Actions,
    pub attributes: *const Attributes,
    pub argv: StringArray,
    pub environment: StringArray,
    /// Initializes a copy of the actions, to which the redirections of the text can be added.
    /// `None` if the actions cannot be copied.
    pub copy_actions: Option<&'a dyn Fn(*mut Actions) -> c_int>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReplacedShell {
    pub shell: Shell,
    /// Whether its message about a killed command goes to `/dev/null`.
    pub is_silent: bool,
}

/// Launches the program of a `sh -c` that needs no shell. Returns the shell that it replaces, or
/// `None` if nothing was launched.
///
/// # Safety
/// The request is valid for `posix_spawn`.
#[inline(never)]
pub unsafe fn skip_shell(pid: *mut pid_t, request: Request<'_>) -> Option<ReplacedShell> {
    if !request.actions.is_null() && CHANGES_DIRECTORY.load(Relaxed) {
        return None;
    }
    let before = errno();
    let mut plan = Plan::new();
    let start = Start {
        // SAFETY: as the caller promises.
        mask: unsafe { mask_of(request.attributes) },
        inherits_input: request.actions.is_null(),
        redirections: request.copy_actions.map_or(Redirections::None, |_| Redirections::WithKnownMessage),
    };
    // SAFETY: as the caller promises; the plan's arrays end with NULL.
    let launched = unsafe {
        let shell = plan.decide(request.path, request.argv, request.environment, start);
        // If the exec failed, the shell's spawn would carry out the actions a second time.
        let may_skip = request.actions.is_null() || shell.is_none() || is_program(plan.program());
        shell.filter(|_| may_skip).and_then(|shell| {
            count(Counter::Direct);
            if launch(pid, &plan, request) == 0 {
                let is_silent = error_destination(plan.words()) == ErrorDestination::Null;
                return Some(ReplacedShell { shell, is_silent });
            }
            count(Counter::Failed);
            None
        })
    };
    set_errno(before);
    launched
}

/// Launches a program. Returns 0 or an errno.
///
/// # Safety
/// The request is valid for `posix_spawn`.
pub unsafe fn start(pid: *mut pid_t, request: Request<'_>) -> c_int {
    let Request { path, actions, attributes, argv, environment, .. } = request;
    // SAFETY: as the caller promises. A relative path may name another file after the actions; then
    // the library stays, or is left out.
    unsafe {
        with_environment(path, environment, |environment| {
            real::posix_spawn(pid, path, actions, attributes, argv, environment)
        })
    }
}

/// Launches the planned program. Returns 0 or an errno.
unsafe fn launch(pid: *mut pid_t, plan: &Plan, request: Request<'_>) -> c_int {
    let spawn = |actions| {
        let (path, argv, environment) = (plan.program(), plan.arguments(), plan.environment());
        // SAFETY: as the caller of `skip_shell` promises; the plan's arrays end with NULL.
        unsafe { start(pid, Request { path, actions, argv, environment, ..request }) }
    };
    let Some(copy_actions) = request.copy_actions.filter(|_| !plan.words().redirections().is_empty()) else {
        return spawn(request.actions);
    };
    let mut actions = MaybeUninit::<Actions>::uninit();
    let mut error = copy_actions(actions.as_mut_ptr());
    // SAFETY: the actions are initialized, even if not all could be added, and destroyed last.
    unsafe {
        if error == 0 {
            error = add_file_actions(actions.as_mut_ptr(), plan.words());
        }
        if error == 0 {
            error = spawn(actions.as_ptr());
        }
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
    }
    error
}

/// Returns the signal mask that the attributes set, if they set one.
unsafe fn mask_of(attributes: *const Attributes) -> Option<sigset_t> {
    if attributes.is_null() {
        return None;
    }
    let mut flags = 0;
    let mut mask = MaybeUninit::<sigset_t>::zeroed();
    // SAFETY: the attributes are the caller's, and the buffers of the right types.
    unsafe {
        libc::posix_spawnattr_getflags(attributes, &raw mut flags);
        let sets_mask = c_int::from(flags) & libc::POSIX_SPAWN_SETSIGMASK as c_int != 0;
        (sets_mask && libc::posix_spawnattr_getsigmask(attributes, mask.as_mut_ptr()) == 0).then(|| mask.assume_init())
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const Actions,
    attributes: *const Attributes,
    argv: StringArray,
    environment: StringArray,
) -> c_int {
    let request = Request { path, actions, attributes, argv, environment, copy_actions: None };
    // SAFETY: the arguments are the caller's.
    unsafe {
        if path.is_null() {
            return real::posix_spawn(pid, path, actions, attributes, argv, environment);
        }
        if is_named_as_shell(path) && skip_shell(pid, request).is_some() {
            return 0;
        }
        start(pid, request)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const Actions,
    attributes: *const Attributes,
    argv: StringArray,
    environment: StringArray,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        let spawn = |environment| real::posix_spawnp(pid, file, actions, attributes, argv, environment);
        if file.is_null() {
            return spawn(environment);
        }
        let mut path = PathBuffer::new();
        let Some(path) = find_program(file, &mut path) else { return spawn(environment) };
        let request = Request { path, actions, attributes, argv, environment, copy_actions: None };
        if is_named_as_shell(path) && skip_shell(pid, request).is_some() {
            return 0;
        }
        with_environment(path, environment, spawn)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_addchdir_np(actions: *mut Actions, path: *const c_char) -> c_int {
    CHANGES_DIRECTORY.store(true, Relaxed);
    // SAFETY: the arguments are the caller's.
    unsafe { real::posix_spawn_file_actions_addchdir_np(actions, path) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawn_file_actions_addfchdir_np(actions: *mut Actions, descriptor: c_int) -> c_int {
    CHANGES_DIRECTORY.store(true, Relaxed);
    // SAFETY: the arguments are the caller's.
    unsafe { real::posix_spawn_file_actions_addfchdir_np(actions, descriptor) }
}
