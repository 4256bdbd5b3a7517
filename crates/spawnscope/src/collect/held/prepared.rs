//! Everything the command's process needs, allocated before the fork: between fork and exec only system calls happen,
//! since another thread could have held the allocator's lock.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::sys::signal::SigSet;
use nix::unistd::{Gid, Uid};

use super::inheritance;

/// Whom the command runs as, when that is not the recorder's own user.
#[derive(Clone, Debug)]
pub struct Identity {
    /// User id.
    pub uid: Uid,
    /// Group id.
    pub gid: Gid,
    /// Supplementary groups.
    pub groups: Vec<Gid>,
    /// HOME, USER and LOGNAME.
    pub environment: Vec<(OsString, OsString)>,
}

impl Identity {
    /// Makes this process that user's, for good; makes only system calls.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn assume(&self) -> nix::Result<()> {
        nix::unistd::setgroups(&self.groups)?;
        nix::unistd::setresgid(self.gid, self.gid, self.gid)?;
        nix::unistd::setresuid(self.uid, self.uid, self.uid)
    }
}

/// What is executed, as what user.
pub(super) struct Prepared {
    path: CString,
    argv: Strings,
    shell_argv: Strings,
    environment: Strings,
    identity: Option<Identity>,
    mask: SigSet,
}

impl Prepared {
    /// `None` when a string has a NUL.
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

    /// Becomes the command; returns why not.
    pub(super) fn execute(&self) -> nix::Error {
        inheritance::restore(&self.mask);
        if let Err(error) = self.become_user() {
            return error;
        }
        match self.argv.execute(&self.path, &self.environment) {
            // A script without `#!`: what execvp and every shell do.
            nix::Error::ENOEXEC => self.shell_argv.execute(c"/bin/sh", &self.environment),
            error => error,
        }
    }

    fn become_user(&self) -> nix::Result<()> {
        self.identity.as_ref().map_or(Ok(()), Identity::assume)
    }
}

/// Our environment, with what belongs to another user replaced.
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

/// Strings as `execve` wants them: an array of pointers that ends with NULL.
struct Strings {
    pointers: Vec<*const libc::c_char>,
    /// What the pointers point into.
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

    /// Executes the program with these arguments; returns why it could not.
    fn execute(&self, path: &CStr, environment: &Strings) -> nix::Error {
        // SAFETY: both arrays end with NULL, and their strings live as long as `self` and `environment`.
        unsafe { libc::execve(path.as_ptr(), self.pointers.as_ptr(), environment.pointers.as_ptr()) };
        nix::Error::last()
    }
}
