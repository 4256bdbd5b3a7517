//! The spawn hooks. File actions cannot be read, and one that changes the directory would change the search and PWD. So after the first
//! such action in a process, its spawns with file actions go to the shell.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use libc::{c_char, c_int, pid_t, posix_spawn_file_actions_t as Actions, posix_spawnattr_t as Attributes, sigset_t};

use crate::exec::found;
use crate::hooks::{Strings, real};
use crate::plan::{Plan, Start};
use crate::settings::{Counter, count};
use crate::shell::{Shell, is_named_as_shell};
use crate::strings::{PathBuffer, errno, set_errno};

static CHANGES_DIRECTORY: AtomicBool = AtomicBool::new(false);

/// What is launched, as `posix_spawn` takes it.
#[derive(Clone, Copy)]
pub struct Request {
    pub path: *const c_char,
    pub actions: *const Actions,
    pub attributes: *const Attributes,
    pub argv: Strings,
    pub environment: Strings,
}

/// Launches the program of a `sh -c` that needs no shell. Returns the shell that it replaces, or `None` if nothing was launched.
///
/// # Safety
/// The request is valid for `posix_spawn`.
#[inline(never)]
pub unsafe fn attempt(pid: *mut pid_t, request: Request) -> Option<Shell> {
    if !request.actions.is_null() && CHANGES_DIRECTORY.load(Relaxed) {
        return None;
    }
    let before = errno();
    let mut plan = Plan::new();
    let start = Start {
        // SAFETY: as the caller promises.
        mask: unsafe { mask_of(request.attributes) },
        keeps_input: request.actions.is_null(),
    };
    // SAFETY: as the caller promises; the plan's arrays end with NULL.
    let launched = unsafe {
        let shell = plan.make(request.path, request.argv, request.environment, start);
        let is_sound = request.actions.is_null() || shell.is_none() || is_program(plan.program());
        shell.filter(|_| is_sound).and_then(|shell| {
            count(Counter::Direct);
            let (program, argv, environment) = (plan.program(), plan.arguments(), plan.environment());
            match real::posix_spawn(pid, program, request.actions, request.attributes, argv, environment) {
                0 => Some(shell),
                _ => {
                    count(Counter::Failed);
                    None
                }
            }
        })
    };
    set_errno(before);
    launched
}

/// Whether a file begins as a program or a script does. A failing exec would have the actions done twice.
fn is_program(path: *const c_char) -> bool {
    let mut head = [0_u8; 4];
    // SAFETY: `path` is a C string, the buffer has four bytes, and the descriptor is this function's own.
    let count = unsafe {
        let descriptor = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if descriptor < 0 {
            return false;
        }
        let count = libc::read(descriptor, head.as_mut_ptr().cast(), head.len());
        libc::close(descriptor);
        count
    };
    count == 4 && (head == *b"\x7fELF" || head.starts_with(b"#!"))
}

/// The signal mask that the attributes set.
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
    argv: Strings,
    environment: Strings,
) -> c_int {
    let request = Request {
        path,
        actions,
        attributes,
        argv,
        environment,
    };
    // SAFETY: the arguments are the caller's.
    unsafe {
        if !path.is_null() && is_named_as_shell(path) && attempt(pid, request).is_some() {
            return 0;
        }
        real::posix_spawn(pid, path, actions, attributes, argv, environment)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const Actions,
    attributes: *const Attributes,
    argv: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    unsafe {
        if !file.is_null() && is_named_as_shell(file) {
            let mut buffer = PathBuffer::new();
            let before = errno();
            let path = found(file, &mut buffer);
            set_errno(before);
            let launched = path.and_then(|path| {
                let request = Request {
                    path,
                    actions,
                    attributes,
                    argv,
                    environment,
                };
                attempt(pid, request)
            });
            if launched.is_some() {
                return 0;
            }
        }
        real::posix_spawnp(pid, file, actions, attributes, argv, environment)
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
