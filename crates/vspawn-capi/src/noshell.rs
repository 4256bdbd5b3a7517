//! The functions of `popen_noshell.h`, the interface of Ivan Zahariev's popen_noshell library, on
//! top of this library's streams. The header is written by hand. Nothing here is from
//! popen_noshell's code.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{FILE, pid_t};
use vspawn_core::{Command, Mechanism, Stdio};

use crate::entry::entry_or;
use crate::failure::Failure;
use crate::options::command_from_argv;
use crate::pointers::{null, string};
use crate::shell_words::shell_words;
use crate::stream::{Direction, close, direction, open};

/// `struct popen_noshell_pass_to_pclose`. A program compiled with the original header has the same
/// struct.
#[repr(C)]
pub struct NoshellStream {
    fp: *mut FILE,
    pid: pid_t,
    free_clone_mem: c_int,
    stack: *mut c_void,
    func_args: *mut c_void,
}

const MODE_FORK: c_int = 1;
/// The mode that was set last. Every mode other than `MODE_FORK`, known or not, shares memory.
static MODE: AtomicI32 = AtomicI32::new(0);

/// Sets the mode. POPEN_NOSHELL_MODE_FORK requests a fork.
#[unsafe(no_mangle)]
pub extern "C" fn popen_noshell_set_fork_mode(mode: c_int) {
    MODE.store(mode, Ordering::Relaxed);
}

/// Returns the mode that was set last.
#[unsafe(no_mangle)]
pub extern "C" fn popen_noshell_get_fork_mode() -> c_int {
    MODE.load(Ordering::Relaxed)
}

/// See popen_noshell.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen_noshell(
    file: *const c_char,
    argv: *const *const c_char,
    r#type: *const c_char,
    pclose_arg: *mut NoshellStream,
    stderr_mode: c_int,
) -> *mut FILE {
    entry_or(null_mut(), || {
        // SAFETY: the caller's struct or NULL; strings as documented or NULL.
        unsafe {
            let stream_struct = clear(pclose_arg)?;
            string(file, "file")?;
            let command = command_from_argv(file, argv)?;
            start(command, direction(r#type)?, stderr_mode, stream_struct)
        }
    })
}

/// See popen_noshell.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn popen_noshell_compat(
    command: *const c_char,
    r#type: *const c_char,
    pclose_arg: *mut NoshellStream,
) -> *mut FILE {
    entry_or(null_mut(), || {
        // SAFETY: the caller's struct or NULL; strings or NULL.
        let (stream_struct, text, direction) =
            unsafe { (clear(pclose_arg)?, string(command, "command")?, direction(r#type)?) };
        let (names, path) = (std::env::vars_os().map(|(name, _)| name), std::env::var_os("PATH"));
        let words = shell_words(text.as_encoded_bytes(), names, path.as_deref())
            .map_err(|why| Failure::invalid(&format!("run the command without a shell: {why}")))?;
        let mut words = words.iter().map(|word| OsStr::from_bytes(word));
        let program = words.next().ok_or_else(|| Failure::invalid("run an empty command"))?;
        let mut command = match first_executable(program) {
            Some(found) => {
                let mut command = Command::new(found);
                command.arg0(program);
                command
            }
            None => Command::new(program),
        };
        command.args(words);
        // SAFETY: as with `popen`, the caller changes no variable during the call (vspawn.h).
        unsafe { command.env_unlocked() };
        start(command, direction, 0, stream_struct)
    })
}

/// Returns the first executable file of this name along PATH. Shells execute this file. The
/// library's own search would instead try the next directory if the file's interpreter is missing.
fn first_executable(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    let Ok(text) = CString::new(file.as_os_str().as_bytes()) else { return false };
    // SAFETY: a string.
    let is_permitted = unsafe { libc::access(text.as_ptr(), libc::X_OK) } == 0;
    is_permitted && file.is_file()
}

/// Fills the caller's struct with zeros.
///
/// # Safety
/// `stream_struct` is NULL or the caller's struct, initialised or not.
unsafe fn clear<'a>(stream_struct: *mut NoshellStream) -> Result<&'a mut NoshellStream, Failure> {
    if stream_struct.is_null() {
        return Err(null("pclose_arg"));
    }
    // SAFETY: the caller's promise; all zero is valid.
    unsafe {
        stream_struct.write(std::mem::zeroed());
        Ok(&mut *stream_struct)
    }
}

/// Starts a command with the streams of the original library: the stream that is not requested is
/// `/dev/null`.
fn start(
    mut command: Command,
    direction: Direction,
    stderr_mode: c_int,
    stream_struct: &mut NoshellStream,
) -> Result<*mut FILE, Failure> {
    if !(0..=2).contains(&stderr_mode) {
        return Err(Failure::invalid(&format!("use stderr_mode {stderr_mode}")));
    }
    if MODE.load(Ordering::Relaxed) == MODE_FORK {
        command.mechanism(Mechanism::Fork);
    }
    let (file, pid) = open(command, direction, |command, end| {
        let (input, output) = match direction {
            Direction::Read => (Stdio::null(), end),
            Direction::Write => (end, Stdio::null()),
        };
        match stderr_mode {
            1 => command.stderr(Stdio::null()),
            2 => command.stderr(output.clone()),
            _ => command,
        }
        .stdin(input)
        .stdout(output);
    })?;
    stream_struct.fp = file;
    stream_struct.pid = pid;
    Ok(file)
}

/// See popen_noshell.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pclose_noshell(arg: *mut NoshellStream) -> c_int {
    entry_or(-1, || {
        // SAFETY: the caller's struct, or NULL.
        let stream = unsafe { arg.as_ref() }.ok_or_else(|| null("arg"))?;
        close(stream.fp, Some(stream.pid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_executable_along_path_is_found() {
        let sh = first_executable(OsStr::new("sh")).expect("there is a shell");
        assert!(sh.ends_with("sh") && sh.is_absolute());
        assert_eq!(first_executable(OsStr::new("/bin/sh")), None, "a path is not a name");
        assert_eq!(first_executable(OsStr::new("no-such-program-anywhere")), None);
    }
}
