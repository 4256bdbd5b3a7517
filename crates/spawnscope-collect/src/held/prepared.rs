//! Everything the command's process needs, allocated before the fork. Between fork and exec only system calls are allowed, since
//! another thread may have held the allocator's lock.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid};

use super::inheritance;

/// The user that the command runs as, if it is not the recorder's own.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The user id.
    pub uid: Uid,
    /// The group id.
    pub gid: Gid,
    /// The supplementary groups.
    pub groups: Vec<Gid>,
    /// HOME, USER and LOGNAME of the user.
    pub environment: Vec<(OsString, OsString)>,
}

impl Identity {
    /// Switches this process to that user permanently. Makes only system calls.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn assume(&self) -> nix::Result<()> {
        nix::unistd::setgroups(&self.groups)?;
        nix::unistd::setresgid(self.gid, self.gid, self.gid)?;
        nix::unistd::setresuid(self.uid, self.uid, self.uid)
    }
}

/// What to execute, and as which user.
pub(super) struct Prepared {
    path: CString,
    argv: Strings,
    shell_argv: Strings,
    environment: Strings,
    identity: Option<Identity>,
    mask: SigSet,
}

impl Prepared {
    /// `None` if a string contains a NUL.
    pub(super) fn new(path: &Path, command: &[OsString], identity: Option<Identity>, mask: SigSet) -> Option<Prepared> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).ok();
        let path = text(path.as_os_str())?;
        let argv = command
            .iter()
            .map(|argument| text(argument))
            .collect::<Option<Vec<_>>>()?;
        let mut shell_argv = vec![c"sh".to_owned(), path.clone()];
        shell_argv.extend(argv.iter().skip(1).cloned());
        let (argv, shell_argv) = (Strings::new(argv), Strings::new(shell_argv));
        let environment = Strings::new(environment(identity.as_ref())?);
        Some(Prepared {
            path,
            argv,
            shell_argv,
            environment,
            identity,
            mask,
        })
    }

    /// Becomes the command. Returns only on failure.
    pub(super) fn execute(&self) -> nix::Error {
        inheritance::restore(&self.mask);
        if let Err(error) = self.become_user() {
            return error;
        }
        match self.argv.execute(&self.path, &self.environment) {
            // A script without `#!`: run it with the shell, as execvp and every shell do.
            nix::Error::ENOEXEC => self.shell_argv.execute(c"/bin/sh", &self.environment),
            error => error,
        }
    }

    fn become_user(&self) -> nix::Result<()> {
        self.identity.as_ref().map_or(Ok(()), Identity::assume)
    }
}

/// Our environment, with the variables of `identity` replaced.
fn environment(identity: Option<&Identity>) -> Option<Vec<CString>> {
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    for (name, value) in identity.iter().flat_map(|identity| &identity.environment) {
        environment.retain(|(other, _)| other != name);
        environment.push((name.clone(), value.clone()));
    }
    let entries = environment.into_iter().map(|(mut entry, value)| {
        entry.push("=");
        entry.push(value);
        CString::new(entry.into_vec()).ok()
    });
    entries.collect()
}

/// A string array as `execve` expects it: pointers, terminated by NULL.
struct Strings {
    pointers: Vec<*const libc::c_char>,
    /// The strings that the pointers refer to.
    _strings: Vec<CString>,
}

impl Strings {
    fn new(strings: Vec<CString>) -> Strings {
        let pointers = strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        Strings {
            pointers,
            _strings: strings,
        }
    }

    /// Executes the program with these arguments. Returns only on failure.
    fn execute(&self, path: &CStr, environment: &Strings) -> nix::Error {
        // SAFETY: both arrays end with NULL, and their strings live as long as `self` and `environment`.
        unsafe { libc::execve(path.as_ptr(), self.pointers.as_ptr(), environment.pointers.as_ptr()) };
        nix::Error::last()
    }
}
