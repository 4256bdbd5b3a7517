//! The child's environment variables. They are copied if the command is prepared or changes
//! variables, or if the process has several threads, since another thread might change them.
//! Otherwise, the kernel reads C's `environ` itself at exec.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI8, AtomicPtr, Ordering};

use super::strings::{StringArray, StringArrayBuilder};
use crate::command::Command;
use crate::error::Error;

/// How the child gets its variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inheritance {
    /// Copied now, under the lock of Rust's standard library.
    Copied,
    /// Read from `environ` by the kernel if the command changes no variable and no other thread
    /// can. Only for a child that calls exec before the caller continues.
    InPlace,
}

pub(crate) enum Environment {
    Copy(StringArray),
    /// C's `environ` at the time of the spawn.
    Environ,
}

impl Environment {
    pub(crate) fn new(command: &Command, inheritance: Inheritance) -> Result<Environment, Error> {
        if command.clear_env || !command.env.is_empty() {
            return copy_with_changes(command).map(Environment::Copy);
        }
        Ok(match inheritance {
            Inheritance::InPlace if command.env_unlocked || is_single_threaded() => Environment::Environ,
            // SAFETY: the caller of `env_unlocked` guarantees that no thread changes it now.
            Inheritance::Copied if command.env_unlocked => Environment::Copy(unsafe { copy_environ() }),
            Inheritance::InPlace | Inheritance::Copied => copy_with_changes(command).map(Environment::Copy)?,
        })
    }

    /// Returns the array for execve.
    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        match self {
            Environment::Copy(strings) => strings.as_ptr(),
            Environment::Environ => match environ() {
                // clearenv sets `environ` to NULL.
                array if array.is_null() => EMPTY_ARRAY.0.as_ptr(),
                array => array,
            },
        }
    }
}

struct EmptyArray([*const c_char; 1]);
// SAFETY: never written.
unsafe impl Sync for EmptyArray {}
static EMPTY_ARRAY: EmptyArray = EmptyArray([ptr::null()]);

/// Whether libc knows that the process has one thread: `__libc_single_threaded` of glibc 2.32 and
/// later. `false` with other C libraries.
fn is_single_threaded() -> bool {
    static FLAG: OnceLock<Option<&'static AtomicI8>> = OnceLock::new();
    let flag = FLAG.get_or_init(|| {
        // SAFETY: a libc variable, a `char`, which exists for the life of the process; NULL if
        // there is none.
        unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__libc_single_threaded".as_ptr()).cast::<AtomicI8>().as_ref() }
    });
    flag.is_some_and(|flag| flag.load(Ordering::Relaxed) != 0)
}

fn environ() -> *const *const c_char {
    unsafe extern "C" {
        #[link_name = "environ"]
        static ENVIRON: AtomicPtr<*const c_char>;
    }
    // SAFETY: libc's variable, a pointer; other threads may change it.
    unsafe { ENVIRON.load(Ordering::Acquire) }
}

/// Copies the parent's variables that the command keeps, and adds those that it sets.
fn copy_with_changes(command: &Command) -> Result<StringArray, Error> {
    let mut strings = StringArrayBuilder::default();
    if !command.clear_env {
        for (key, value) in std::env::vars_os().filter(|(key, _)| !command.env.contains_key(key)) {
            push_variable(&mut strings, &key, &value)?;
        }
    }
    for (key, value) in &command.env {
        if let Some(value) = value {
            push_variable(&mut strings, key, value)?;
        }
    }
    Ok(strings.finish())
}

fn push_variable(strings: &mut StringArrayBuilder, key: &OsStr, value: &OsStr) -> Result<(), Error> {
    let is_valid_name = !key.is_empty() && !key.as_bytes()[1..].contains(&b'=');
    if !is_valid_name {
        let name = key.to_string_lossy();
        return Err(Error::invalid(format!("pass variable {name}: its name is empty or contains =")));
    }
    strings.reserve(1, key.len() + 1 + value.len())?;
    match strings.push(&[key, OsStr::new("="), value]) {
        true => Ok(()),
        false => Err(Error::nul(&format!("variable {}", key.to_string_lossy()))),
    }
}

/// Copies C's `environ` without a lock.
///
/// # Safety
/// No thread may change the environment during the call.
unsafe fn copy_environ() -> StringArray {
    let mut strings = StringArrayBuilder::for_environment();
    // SAFETY: an array of strings, ended by NULL; NULL itself after clearenv.
    unsafe {
        let mut next = environ();
        while !next.is_null() && !(*next).is_null() {
            strings.push_c_string(CStr::from_ptr(*next));
            next = next.add(1);
        }
    }
    strings.finish()
}
