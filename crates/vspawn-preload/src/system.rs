//! Replaces `system` for every text. SIGINT and SIGQUIT stay ignored until the last concurrent call
//! has ended, so all calls must be counted together.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, zeroed};

use libc::{c_char, c_int, pid_t, posix_spawn_file_actions_t as Actions, posix_spawnattr_t, sigaction, sigset_t};

use crate::exec::own_environment;
use crate::hooks::real;
use crate::lock::Lock;
use crate::spawn::{ReplacedShell, Request, skip_shell, start};
use crate::status::wait;
use crate::strings::{StringArray, errno, set_errno};

const SHELL: *const c_char = c"/bin/sh".as_ptr();

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// The number of concurrent callers, and the dispositions from before the first of them.
struct SharedState {
    lock: Lock,
    callers: UnsafeCell<usize>,
    interrupt: UnsafeCell<MaybeUninit<sigaction>>,
    quit: UnsafeCell<MaybeUninit<sigaction>>,
}

// SAFETY: the cells are used with the lock held only.
unsafe impl Sync for SharedState {}

static SHARED: SharedState = SharedState {
    lock: Lock::new(),
    callers: UnsafeCell::new(0),
    interrupt: UnsafeCell::new(MaybeUninit::uninit()),
    quit: UnsafeCell::new(MaybeUninit::uninit()),
};

/// While a value of this type exists, SIGINT and SIGQUIT are ignored, and SIGCHLD is blocked.
struct InterruptGuard {
    mask: sigset_t,
    /// Those of SIGINT and SIGQUIT that are reset to their default in the child.
    defaults: sigset_t,
}

impl InterruptGuard {
    fn new() -> InterruptGuard {
        let _guard = SHARED.lock.take();
        // SAFETY: the lock is held; all structures are libc's, zeroed before.
        unsafe {
            let mut ignore: sigaction = zeroed();
            ignore.sa_sigaction = libc::SIG_IGN;
            if *SHARED.callers.get() == 0 {
                libc::sigaction(libc::SIGINT, &raw const ignore, SHARED.interrupt.get().cast());
                libc::sigaction(libc::SIGQUIT, &raw const ignore, SHARED.quit.get().cast());
            }
            *SHARED.callers.get() += 1;
            let mut ignored = InterruptGuard { mask: zeroed(), defaults: zeroed() };
            for (signal, saved) in [(libc::SIGINT, &SHARED.interrupt), (libc::SIGQUIT, &SHARED.quit)] {
                if (*saved.get().cast::<sigaction>()).sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&raw mut ignored.defaults, signal);
                }
            }
            let mut child: sigset_t = zeroed();
            libc::sigaddset(&raw mut child, libc::SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const child, &raw mut ignored.mask);
            ignored
        }
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        let _guard = SHARED.lock.take();
        // SAFETY: the lock is held; the first caller has saved the dispositions.
        unsafe {
            *SHARED.callers.get() -= 1;
            if *SHARED.callers.get() == 0 {
                libc::sigaction(libc::SIGINT, SHARED.interrupt.get().cast(), core::ptr::null_mut());
                libc::sigaction(libc::SIGQUIT, SHARED.quit.get().cast(), core::ptr::null_mut());
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, core::ptr::null_mut());
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn system(text: *const c_char) -> c_int {
    if text.is_null() {
        // SAFETY: with NULL, `system` returns whether there is a shell.
        return unsafe { real::system(text) };
    }
    let mut before = 0;
    // A cancelled thread must not be unwound through Rust, so cancellation waits until the command
    // has ended. SAFETY: the state is a number.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
    let status = run(text);
    // SAFETY: as above.
    unsafe { pthread_setcancelstate(before, core::ptr::null_mut()) };
    status
}

fn run(text: *const c_char) -> c_int {
    let ignored = InterruptGuard::new();
    let (status, error) = match launch(text, &ignored) {
        Ok((pid, replaced)) => (wait(pid, replaced), errno()),
        // The status is the same as if the shell could not be executed.
        Err(error) => (127 << 8, error),
    };
    drop(ignored);
    if status == -1 || status == 127 << 8 {
        set_errno(error);
    }
    status
}

/// Launches the command. Returns the child's pid and the shell that it replaces, or `None` if the
/// child is a shell. The error is an errno.
fn launch(text: *const c_char, ignored: &InterruptGuard) -> Result<(pid_t, Option<ReplacedShell>), c_int> {
    let argv = [c"sh".as_ptr(), c"-c".as_ptr(), text, core::ptr::null()];
    let mut pid = 0;
    let mut attributes = MaybeUninit::<posix_spawnattr_t>::uninit();
    // SAFETY: the attributes are initialized first and destroyed last; the arrays end with NULL.
    unsafe {
        libc::posix_spawnattr_init(attributes.as_mut_ptr());
        let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        libc::posix_spawnattr_setflags(attributes.as_mut_ptr(), flags as _);
        libc::posix_spawnattr_setsigmask(attributes.as_mut_ptr(), &raw const ignored.mask);
        libc::posix_spawnattr_setsigdefault(attributes.as_mut_ptr(), &raw const ignored.defaults);
        let result = spawn(&mut pid, argv.as_ptr(), core::ptr::null(), &no_actions, attributes.as_ptr());
        libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
        result.map(|replaced| (pid, replaced))
    }
}

fn no_actions(actions: *mut Actions) -> c_int {
    // SAFETY: the caller's actions are only initialized.
    unsafe { libc::posix_spawn_file_actions_init(actions) }
}

/// Launches `/bin/sh` with these arguments, or the program that `/bin/sh` would launch.
///
/// # Safety
/// The arguments are valid for `posix_spawn`; `copy_actions` initializes the same actions.
pub unsafe fn spawn(
    pid: &mut pid_t,
    argv: StringArray,
    actions: *const Actions,
    copy_actions: &dyn Fn(*mut Actions) -> c_int,
    attributes: *const posix_spawnattr_t,
) -> Result<Option<ReplacedShell>, c_int> {
    let request = Request {
        path: SHELL,
        actions,
        attributes,
        argv,
        environment: own_environment(),
        copy_actions: Some(copy_actions),
    };
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(replaced) = skip_shell(pid, request) {
            return Ok(Some(replaced));
        }
        match start(pid, request) {
            0 => Ok(None),
            error => Err(error),
        }
    }
}
