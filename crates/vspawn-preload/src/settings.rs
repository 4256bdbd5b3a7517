//! The settings of a process, read once at its start, and the counters of `--explain`: a page of a
//! file that all processes of the tree map.

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize};

use crate::shell::KNOWN_SHELLS;
use crate::strings::{PATH_LIMIT, base_name, bytes};

/// The outcome of an exec or spawn. The order is that of the page, which
/// `spawnscope accel --explain` reads.
#[derive(Clone, Copy)]
pub enum Counter {
    Direct,
    /// The text is more than one simple command.
    Syntax,
    Builtin,
    /// A variable changes what the shell does.
    Environment,
    /// The shell would change signals or ids, or read standard input as a remote shell.
    Process,
    /// The program was not found, or cannot be executed.
    Program,
    UnknownShell,
    Strict,
    /// The exec failed, and the shell was used after all.
    Failed,
    /// The text has a redirection, and the shell is not dash, or the hook cannot carry it out.
    Redirection,
    /// A small program's work was done without executing it.
    InPlace,
}

pub const PAGE_BYTES: usize = 4096;

const OFF: u8 = 1;
const STRICT: u8 = 2;
const EXECUTES_ALL: u8 = 4;
/// Longer than each path of `KNOWN_SHELLS`.
const SHELL_PATH_MAX: usize = 16;
const LIBRARY: &[u8] = b"libvspawn_preload.so";

static FLAGS: AtomicU8 = AtomicU8::new(0);
static COUNTERS: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());

#[derive(Clone, Copy)]
pub struct Settings {
    pub is_on: bool,
    /// Whether the shell is kept wherever its absence could be noticed.
    pub is_strict: bool,
    /// Whether the work of small programs is done without executing them (`in_place`).
    pub does_in_place: bool,
}

pub fn settings() -> Settings {
    let flags = FLAGS.load(Relaxed);
    Settings {
        is_on: flags & OFF == 0,
        is_strict: flags & STRICT != 0,
        does_in_place: flags & (STRICT | EXECUTES_ALL) == 0,
    }
}

/// Whether this process runs the system's dash or bash, by the file that was executed; a process
/// cannot change that.
fn runs_in_shell() -> bool {
    let mut path = [0u8; SHELL_PATH_MAX];
    // SAFETY: the buffer has this length. A longer path is cut off, and is not that of a shell.
    let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    let path = usize::try_from(length).ok().and_then(|length| path.get(..length));
    path.is_some_and(|path| KNOWN_SHELLS.iter().any(|(shell, _)| shell.to_bytes() == path))
}

/// Increments a counter, if `--explain` has created the page.
pub fn count(counter: Counter) {
    let page = COUNTERS.load(Relaxed);
    if !page.is_null() {
        // SAFETY: the page has room for all counters, is aligned, and stays mapped.
        unsafe { &*page.add(counter as usize) }.fetch_add(1, Relaxed);
    }
}

/// Reads the settings from the environment. The constructor calls this.
pub fn read() {
    let mut flags = 0;
    if value(c"SPAWNSCOPE_ACCEL") == Some(b"0") {
        flags |= OFF;
    }
    if value(c"SPAWNSCOPE_ACCEL_STRICT").is_some_and(|value| value != b"0") {
        flags |= STRICT;
    }
    if value(c"SPAWNSCOPE_ACCEL_PROGRAMS") == Some(b"0") || !runs_in_shell() {
        flags |= EXECUTES_ALL;
    }
    FLAGS.store(flags, Relaxed);
    store_library();
    // SAFETY: a C string is returned, or NULL.
    let file = unsafe { libc::getenv(c"SPAWNSCOPE_ACCEL_EXPLAIN".as_ptr()) };
    if !file.is_null() {
        map_counters(file);
    }
}

/// A value of LD_PRELOAD.
struct Library {
    bytes: UnsafeCell<[u8; PATH_LIMIT]>,
    length: AtomicUsize,
}

// SAFETY: the bytes are written by the constructor, before the length, and never again.
unsafe impl Sync for Library {}

/// The value of LD_PRELOAD at the start of this process, if it names this library only.
static PRELOADED: Library = Library { bytes: UnsafeCell::new([0; PATH_LIMIT]), length: AtomicUsize::new(0) };

/// Returns the value of LD_PRELOAD at the start of this process. Empty if other libraries are
/// preloaded, too.
pub fn preloaded() -> &'static [u8] {
    let length = PRELOADED.length.load(Acquire);
    // SAFETY: the length is stored after the bytes, which do not change again.
    unsafe { &*PRELOADED.bytes.get() }.get(..length).unwrap_or(&[])
}

fn store_library() {
    let Some(library) = value(c"LD_PRELOAD") else { return };
    if base_name(library) != LIBRARY || library.iter().any(|byte| b" :".contains(byte)) {
        return;
    }
    // SAFETY: this runs once, before any other thread.
    if let Some(target) = unsafe { &mut *PRELOADED.bytes.get() }.get_mut(..library.len()) {
        target.copy_from_slice(library);
        PRELOADED.length.store(library.len(), Release);
    }
}

fn value<'a>(name: &core::ffi::CStr) -> Option<&'a [u8]> {
    // SAFETY: the environment is read at the start of the process, before any thread changes it.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        (!value.is_null()).then(|| bytes(value))
    }
}

/// Maps the page of counters. A process that may not open the file is not counted.
fn map_counters(file: *const libc::c_char) {
    // SAFETY: `file` is a C string; the descriptor is this function's own; a mapping that failed is
    // not stored.
    unsafe {
        let descriptor = libc::open(file, libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW);
        if descriptor < 0 {
            return;
        }
        let mut status: libc::stat = core::mem::zeroed();
        let is_page = libc::fstat(descriptor, &raw mut status) == 0
            && status.st_mode & libc::S_IFMT == libc::S_IFREG
            && status.st_size >= PAGE_BYTES as libc::off_t;
        if is_page {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let page = libc::mmap(core::ptr::null_mut(), PAGE_BYTES, rights, libc::MAP_SHARED, descriptor, 0);
            if page != libc::MAP_FAILED {
                COUNTERS.store(page.cast(), Relaxed);
            }
        }
        libc::close(descriptor);
    }
}
