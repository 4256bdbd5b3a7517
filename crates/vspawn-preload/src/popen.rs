//! `popen` and `pclose`, for all texts. A child has to close the streams of all earlier calls, so
//! they must be in one table. As in libc, `fclose` of such a stream is `pclose`.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{FILE, c_char, c_int, pid_t, posix_spawn_file_actions_t as Actions};

use crate::hooks::real;
use crate::lock::Lock;
use crate::spawn::ReplacedShell;
use crate::status::wait;
use crate::strings::{bytes, errno, set_errno};
use crate::system::spawn;

/// The largest number of open streams. libc opens further ones.
const STREAMS_MAX: usize = 256;

#[derive(Clone, Copy)]
struct Stream {
    file: *mut FILE,
    descriptor: c_int,
    pid: pid_t,
    /// The shell that the child replaces. `None` if the child is a shell.
    replaced: Option<ReplacedShell>,
}

struct Table {
    lock: Lock,
    streams: UnsafeCell<[Option<Stream>; STREAMS_MAX]>,
    /// The number of open streams. If it is 0, `fclose` need not take the lock.
    count: AtomicUsize,
}

// SAFETY: the streams are used with the lock held only.
unsafe impl Sync for Table {}

static TABLE: Table =
    Table { lock: Lock::new(), streams: UnsafeCell::new([None; STREAMS_MAX]), count: AtomicUsize::new(0) };

#[unsafe(no_mangle)]
unsafe extern "C" fn popen(text: *const c_char, mode: *const c_char) -> *mut FILE {
    // SAFETY: the arguments are the caller's C strings.
    let mode_read = match unsafe { (!text.is_null() && !mode.is_null()).then(|| bytes(mode)) } {
        Some(b"r") => Some((true, false)),
        Some(b"w") => Some((false, false)),
        Some(b"re" | b"er") => Some((true, true)),
        Some(b"we" | b"ew") => Some((false, true)),
        _ => None,
    };
    let _guard = TABLE.lock.take();
    // SAFETY: the lock is held.
    let free = unsafe { (*TABLE.streams.get()).iter_mut().find(|slot| slot.is_none()) };
    let (Some((reads, is_closed_on_exec)), Some(free)) = (mode_read, free) else {
        // SAFETY: the arguments are the caller's.
        return unsafe { real::popen(text, mode) };
    };
    match open(text, reads, is_closed_on_exec) {
        Ok(stream) => {
            *free = Some(stream);
            TABLE.count.fetch_add(1, Relaxed);
            stream.file
        }
        Err(error) => {
            set_errno(error);
            core::ptr::null_mut()
        }
    }
}

/// Launches a child at the other end of a pipe. The caller holds the lock. The error is an errno.
fn open(text: *const c_char, reads: bool, is_closed_on_exec: bool) -> Result<Stream, c_int> {
    let mut ends = [-1; 2];
    // SAFETY: the array has two places.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(errno());
    }
    let [parent_end, child_end] = if reads { ends } else { [ends[1], ends[0]] };
    let kind = if reads { c"r" } else { c"w" };
    // SAFETY: the descriptors are this function's own; a stream takes over its descriptor.
    unsafe {
        let file = libc::fdopen(parent_end, kind.as_ptr());
        if file.is_null() {
            let error = errno();
            libc::close(parent_end);
            libc::close(child_end);
            return Err(error);
        }
        let mut pid = 0;
        let launched = launch(text, child_end, c_int::from(reads), &mut pid);
        libc::close(child_end);
        match launched {
            Ok(replaced) => {
                if !is_closed_on_exec {
                    libc::fcntl(parent_end, libc::F_SETFD, 0);
                }
                Ok(Stream { file, descriptor: parent_end, pid, replaced })
            }
            Err(error) => {
                real::fclose(file);
                Err(error)
            }
        }
    }
}

/// Launches the child with its end of the pipe as `target`, and without the streams of earlier
/// calls.
unsafe fn launch(
    text: *const c_char,
    end: c_int,
    target: c_int,
    pid: &mut pid_t,
) -> Result<Option<ReplacedShell>, c_int> {
    let argv = [c"sh".as_ptr(), c"-c".as_ptr(), text, core::ptr::null()];
    let mut actions = MaybeUninit::<Actions>::uninit();
    // SAFETY: the actions are the caller's; the lock is held.
    let fill = |actions: *mut Actions| unsafe {
        libc::posix_spawn_file_actions_init(actions);
        let mut error = libc::posix_spawn_file_actions_adddup2(actions, end, target);
        for stream in (*TABLE.streams.get()).iter().flatten() {
            if stream.descriptor != target && error == 0 {
                error = libc::posix_spawn_file_actions_addclose(actions, stream.descriptor);
            }
        }
        error
    };
    let error = fill(actions.as_mut_ptr());
    // SAFETY: the actions are initialized first and destroyed last.
    unsafe {
        let result = match error {
            0 => spawn(pid, argv.as_ptr(), actions.as_ptr(), &fill, core::ptr::null()),
            error => Err(error),
        };
        libc::posix_spawn_file_actions_destroy(actions.as_mut_ptr());
        result
    }
}

fn take_stream(file: *mut FILE) -> Option<Stream> {
    if TABLE.count.load(Relaxed) == 0 {
        return None;
    }
    let _guard = TABLE.lock.take();
    // SAFETY: the lock is held.
    let streams = unsafe { &mut *TABLE.streams.get() };
    let slot = streams.iter_mut().find(|slot| slot.is_some_and(|stream| stream.file == file))?;
    TABLE.count.fetch_sub(1, Relaxed);
    slot.take()
}

/// Closes a stream and waits for its child. As in libc, returns the child's status if it is not 0,
/// even if the closing failed.
fn close(stream: Stream) -> c_int {
    // SAFETY: the stream is open, and no other code uses it.
    let closed = unsafe { real::fclose(stream.file) };
    let status = wait(stream.pid, stream.replaced);
    if closed != 0 && status == 0 { -1 } else { status }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pclose(file: *mut FILE) -> c_int {
    match take_stream(file) {
        Some(stream) => close(stream),
        // SAFETY: the argument is the caller's.
        None => unsafe { real::pclose(file) },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fclose(file: *mut FILE) -> c_int {
    match take_stream(file) {
        Some(stream) => close(stream),
        // SAFETY: the argument is the caller's.
        None => unsafe { real::fclose(file) },
    }
}
