//! Small programs of coreutils whose work is done by the process that was about to execute them:
//! `dirname`, `basename`, `mkdir`, `rmdir`, `rm`, `mv`, `ln` and `touch`, with few of their
//! options. Starting them takes longer than their work.
//!
//! This happens only in processes that run dash or bash. An exec recomputes a process's
//! capabilities and its file system user id, and tells a parent that waits for it to continue. The
//! exec of the shell has done so, and no command of a shell can change these ids, so the exec of
//! another program would change nothing. Other programs may have dropped privileges since their
//! exec (`setpriv`), or may have a parent that waits (Python after vfork, Node.js).
//!
//! Only complete successes end the process here. In all other cases (the work fails, the program
//! might print a message, or the result is not proven to be the same), the program is executed
//! after all and reports the result. Work that was done before then has had no effect, or one that
//! the program repeats with the same result.
//!
//! Two differences remain: tracers, audit and Spawnscope see a process that never executes a
//! program, and the parent's resource usage has less CPU time.

use core::mem::MaybeUninit;

use libc::{c_char, c_int};

use crate::plan::is_ordinary_process;
use crate::program::is_elf;
use crate::settings::{Counter, count, preloaded, settings};
use crate::strings::{
    PathBuffer, StringArray, base_name, bytes, entries, errno, is_directory, is_same_file, set_errno, status_of,
};

/// The largest number of arguments. With more, the program is executed.
const ARGUMENTS_MAX: usize = 16;
const DIRECTORIES: [&[u8]; 2] = [b"/usr/bin/", b"/bin/"];
/// The programs. `true` is not among them, because only benchmarks would gain.
const PROGRAMS: [&[u8]; 8] = [b"basename", b"dirname", b"ln", b"mkdir", b"mv", b"rm", b"rmdir", b"touch"];
/// Programs that are all of these, depending on the name by which they are called.
const MULTI_CALL_PROGRAMS: [&[u8]; 3] = [b"busybox", b"coreutils", b"toybox"];

/// The arguments of one program, without its name. Each is a C string.
struct Arguments<'a> {
    list: [&'a [u8]; ARGUMENTS_MAX],
    count: usize,
}

impl<'a> Arguments<'a> {
    /// Reads the arguments. Returns `None` if there are none, or too many.
    unsafe fn read(argv: StringArray) -> Option<Arguments<'a>> {
        let mut arguments = Arguments { list: [&[]; ARGUMENTS_MAX], count: 0 };
        // SAFETY: as the caller promises; the entries are C strings.
        unsafe {
            for argument in entries(argv).skip(1) {
                *arguments.list.get_mut(arguments.count)? = bytes(argument);
                arguments.count += 1;
            }
        }
        (arguments.count > 0).then_some(arguments)
    }

    fn as_slice(&self) -> &[&'a [u8]] {
        self.list.get(..self.count).unwrap_or(&[])
    }
}

/// Returns whether a path is that of a program whose work may be done in place. This runs at every
/// exec, so it is cheap.
///
/// # Safety
/// `path` is a C string.
pub unsafe fn is_candidate(path: *const c_char) -> bool {
    // SAFETY: as the caller promises.
    let path = unsafe { bytes(path) };
    let name = base_name(path);
    is_known(name) && DIRECTORIES.iter().any(|directory| path.strip_prefix(*directory) == Some(name))
}

/// Returns whether a program has this name. Its directory is not checked.
pub fn is_known(name: &[u8]) -> bool {
    PROGRAMS.contains(&name)
}

/// Does a program's work and ends this process. Returns if the program has to be executed.
///
/// # Safety
/// The arguments are valid for `execve`.
#[inline(never)]
pub unsafe fn replace_program(path: *const c_char, argv: StringArray, environment: StringArray) {
    let settings = settings();
    if !settings.is_on || !settings.does_in_place || argv.is_null() || environment.is_null() {
        return;
    }
    let before = errno();
    // SAFETY: as the caller promises.
    let is_done = unsafe {
        is_only_preload(environment) && is_coreutils(path) && is_ordinary_process(false) && {
            let arguments = Arguments::read(argv);
            arguments.is_some_and(|arguments| do_work(base_name(bytes(path)), arguments.as_slice()))
        }
    };
    set_errno(before);
    if is_done {
        count(Counter::InPlace);
        // SAFETY: ends the process without running its exit handlers, which an exec would not run
        // either.
        unsafe { libc::_exit(0) };
    }
}

/// Returns whether the loader would preload this library into the program and no other, and would
/// print nothing itself.
unsafe fn is_only_preload(environment: StringArray) -> bool {
    let this_library = preloaded();
    let mut is_loaded = false;
    // SAFETY: as the caller promises; the entries are C strings.
    unsafe {
        for variable in entries(environment).map(|variable| bytes(variable)) {
            if let Some(library) = variable.strip_prefix(b"LD_PRELOAD=") {
                is_loaded = !this_library.is_empty() && library == this_library;
            } else if variable.starts_with(b"LD_") || variable == b"SPAWNSCOPE_ACCEL=0" {
                return false;
            }
        }
    }
    is_loaded
}

/// Whether a program is a file of its own with the usual permissions, as in Debian's coreutils: not
/// a name of a multi-call program, and not a script.
fn is_coreutils(path: *const c_char) -> bool {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `path` is a C string, and the buffer is a stat, read only if it was filled.
    let status = unsafe {
        if libc::lstat(path, status.as_mut_ptr()) != 0 {
            return false;
        }
        status.assume_init()
    };
    let is_usual = status.st_mode == libc::S_IFREG | 0o755 && status.st_uid == 0;
    is_usual && !(status.st_nlink > 1 && is_multi_call(path, &status)) && is_elf(path)
}

/// Whether a program has other names beside it, as multi-call programs have. Links elsewhere are no
/// sign of that: `perf record` keeps one to each program in its cache.
fn is_multi_call(path: *const c_char, status: &libc::stat) -> bool {
    // SAFETY: `path` is a C string.
    let path = unsafe { bytes(path) };
    let name = base_name(path);
    let directory = path.strip_suffix(name).unwrap_or_default();
    PROGRAMS.iter().chain(&MULTI_CALL_PROGRAMS).filter(|other| **other != name).any(|other| {
        let mut beside = PathBuffer::new();
        !beside.set(&[directory, other]) || status_of(beside.as_ptr()).is_ok_and(|other| is_same_file(&other, status))
    })
}

/// Does the work of a program. Returns whether it succeeded. Only these options and numbers of
/// operands are known; with any others, the program is executed.
fn do_work(name: &[u8], arguments: &[&[u8]]) -> bool {
    let (options, operands) = match arguments {
        [options, operands @ ..] if options.first() == Some(&b'-') => (*options, operands),
        operands => (&b""[..], operands),
    };
    // An option may follow the operands.
    if operands.is_empty() || operands.iter().any(|operand| operand.first() == Some(&b'-')) {
        return false;
    }
    match (name, options, operands) {
        (b"dirname", b"", [path]) => print(directory_of(path)),
        (b"basename", b"", [path]) => print(last_part(path)),
        (b"basename", b"", [path, suffix]) => print(without_suffix(last_part(path), suffix)),
        (b"mkdir", b"", [directory]) => make_directory(directory) == Ok(()),
        (b"mkdir", b"-p", directories) => directories.iter().all(|directory| match make_directory(directory) {
            Err(libc::EEXIST) => is_directory(pointer(directory)),
            made => made == Ok(()),
        }),
        // SAFETY: arguments are C strings.
        (b"rmdir", b"", [directory]) => unsafe { libc::rmdir(pointer(directory)) == 0 },
        (b"rm", b"", [file]) => !is_input_a_terminal() && remove(file) == Ok(()),
        (b"rm", b"-f", files) => files.iter().all(|file| matches!(remove(file), Ok(()) | Err(libc::ENOENT))),
        (b"mv", b"", [from, to]) => rename(from, to),
        // SAFETY: arguments are C strings.
        (b"ln", b"-s" | b"-sf", [to, link]) => unsafe { libc::symlink(pointer(to), pointer(link)) == 0 },
        (b"touch", b"", files) => files.iter().all(|file| touch(file)),
        _ => false,
    }
}

fn pointer(argument: &[u8]) -> *const c_char {
    argument.as_ptr().cast()
}

/// Returns the directory of a path, as dirname prints it.
fn directory_of(path: &[u8]) -> &[u8] {
    let is_root = path.first() == Some(&b'/');
    let without_end = without_end_slashes(path);
    let length = without_end.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    match without_end_slashes(without_end.get(..length).unwrap_or(&[])) {
        b"" if is_root => b"/",
        b"" => b".",
        directory => directory,
    }
}

/// Returns the last part of a path, as basename prints it.
fn last_part(path: &[u8]) -> &[u8] {
    match base_name(without_end_slashes(path)) {
        b"" if path.first() == Some(&b'/') => b"/",
        name => name,
    }
}

fn without_end_slashes(path: &[u8]) -> &[u8] {
    let length = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    path.get(..length).unwrap_or(&[])
}

fn without_suffix<'a>(name: &'a [u8], suffix: &[u8]) -> &'a [u8] {
    match name.strip_suffix(suffix) {
        Some(rest) if !rest.is_empty() && name != b"/" => rest,
        _ => name,
    }
}

/// Writes a line to standard output. If that fails, nothing was written, and the program is
/// executed to report the failure.
fn print(text: &[u8]) -> bool {
    let mut line = PathBuffer::new();
    if !line.set(&[text, b"\n"]) || !has_no_handler(libc::SIGPIPE) {
        return false;
    }
    let length = text.len() + 1;
    // SAFETY: the buffer has that many bytes.
    let written = unsafe { libc::syscall(libc::SYS_write, 1, line.as_ptr(), length) };
    usize::try_from(written) == Ok(length)
}

/// Whether a signal has no handler, so that an exec does not change its disposition.
fn has_no_handler(signal: c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the buffer is what the call fills.
    unsafe {
        libc::sigaction(signal, core::ptr::null(), action.as_mut_ptr()) == 0
            && matches!(action.assume_init().sa_sigaction, libc::SIG_DFL | libc::SIG_IGN)
    }
}

fn is_input_a_terminal() -> bool {
    let mut settings = MaybeUninit::<libc::termios>::uninit();
    // SAFETY: the buffer is what the call fills.
    unsafe { libc::ioctl(0, libc::TCGETS, settings.as_mut_ptr()) == 0 }
}

fn errno_result(returned: c_int) -> Result<(), c_int> {
    if returned == 0 { Ok(()) } else { Err(errno()) }
}

fn make_directory(path: &[u8]) -> Result<(), c_int> {
    // SAFETY: arguments are C strings.
    errno_result(unsafe { libc::mkdir(pointer(path), 0o777) })
}

/// Removes a file. unlink never removes a directory. rm treats a path with a slash at its end in
/// its own way, so such a path is refused.
fn remove(path: &[u8]) -> Result<(), c_int> {
    if path.is_empty() || path.last() == Some(&b'/') {
        return Err(libc::EINVAL);
    }
    // SAFETY: arguments are C strings.
    errno_result(unsafe { libc::unlink(pointer(path)) })
}

/// Renames a file to a new name, or moves it into a directory that has no such name. mv tries the
/// same call first.
fn rename(from: &[u8], to: &[u8]) -> bool {
    if from.is_empty() || to.is_empty() || from.last() == Some(&b'/') {
        return false;
    }
    match rename_to_new(from, pointer(to)) {
        Ok(()) => true,
        Err(libc::EEXIST) => {
            let slash: &[u8] = if to.last() == Some(&b'/') { b"" } else { b"/" };
            let mut path = PathBuffer::new();
            path.set(&[to, slash, base_name(from)]) && rename_to_new(from, path.as_ptr()) == Ok(())
        }
        Err(_) => false,
    }
}

fn rename_to_new(from: &[u8], to: *const c_char) -> Result<(), c_int> {
    // SAFETY: both are C strings.
    let returned = unsafe {
        libc::syscall(libc::SYS_renameat2, libc::AT_FDCWD, pointer(from), libc::AT_FDCWD, to, libc::RENAME_NOREPLACE)
    };
    errno_result(c_int::from(returned != 0))
}

/// Opens or creates a file as touch does, and sets its times to now.
fn touch(path: &[u8]) -> bool {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: arguments are C strings; the descriptor is this function's own.
    unsafe {
        let file = libc::open(pointer(path), flags, 0o666);
        if file < 0 {
            return false;
        }
        let is_set = libc::futimens(file, core::ptr::null()) == 0;
        libc::close(file);
        is_set
    }
}
