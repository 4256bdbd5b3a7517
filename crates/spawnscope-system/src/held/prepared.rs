//! Everything that the command's process needs, allocated before the fork. Between fork and exec, only system calls are allowed, because
//! another thread may have held the allocator's lock during the fork.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid};

use super::inheritance;
use super::moved::MovedAttributes;
use crate::exec_strings::ExecStrings;

/// The user that the command runs as, if it is not the recorder's user.
#[derive(Clone, Debug)]
pub struct Identity {
    pub uid: Uid,
    pub gid: Gid,
    pub groups: Vec<Gid>,
    /// HOME, USER and LOGNAME of the user.
    pub environment: Vec<(OsString, OsString)>,
}

impl Identity {
    /// Switches this process to this user permanently. Makes only system calls.
    pub fn assume(&self) -> nix::Result<()> {
        nix::unistd::setgroups(&self.groups)?;
        nix::unistd::setresgid(self.gid, self.gid, self.gid)?;
        nix::unistd::setresuid(self.uid, self.uid, self.uid)
    }
}

/// What to execute, and as which user.
pub(super) struct PreparedCommand {
    path: CString,
    argv: ExecStrings,
    /// The arguments of `sh`, if the file is a script without `#!`.
    shell_argv: ExecStrings,
    environment: ExecStrings,
    identity: Option<Identity>,
    mask: SigSet,
    moved: MovedAttributes,
}

impl PreparedCommand {
    /// Prepares an exec; `None` if a string contains a NUL.
    pub(super) fn new(
        path: &Path,
        command: &[OsString],
        identity: Option<Identity>,
        variables: &[(OsString, OsString)],
        mask: SigSet,
    ) -> Option<PreparedCommand> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        let argv = command.iter().map(|argument| CString::new(argument.as_bytes()));
        let argv = argv.collect::<Result<Vec<_>, _>>().ok()?;
        let identity_variables = identity.iter().flat_map(|identity| &identity.environment);
        let environment = ExecStrings::own_environment_with(identity_variables.chain(variables))?;
        let mut shell_argv = vec![c"sh".to_owned(), path.clone()];
        shell_argv.extend(argv.iter().skip(1).cloned());
        Some(PreparedCommand {
            path,
            argv: ExecStrings::new(argv),
            shell_argv: ExecStrings::new(shell_argv),
            environment,
            identity,
            mask,
            moved: MovedAttributes::take(&mask),
        })
    }

    /// Executes the command in this process. Returns only on failure.
    pub(super) fn execute(&self) -> nix::Error {
        self.moved.give();
        inheritance::restore(&self.mask);
        if let Err(error) = self.become_user() {
            return error;
        }
        match self.execute_file(&self.path, &self.argv) {
            // A script without `#!`: run it with the shell, as every shell does.
            nix::Error::ENOEXEC if !is_binary(&self.path) => self.execute_file(c"/bin/sh", &self.shell_argv),
            error => error,
        }
    }

    fn execute_file(&self, path: &CStr, argv: &ExecStrings) -> nix::Error {
        // SAFETY: the path ends with NUL, both lists end with NULL, and all of them live as long as `self`.
        unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), self.environment.as_ptr()) };
        nix::Error::last()
    }

    fn become_user(&self) -> nix::Result<()> {
        self.identity.as_ref().map_or(Ok(()), Identity::assume)
    }
}

/// Whether a file that the kernel cannot execute is a program, not a script: of another machine, or damaged. These are the rules of bash. A shell
/// would read it as a script and fail with another status than bash.
fn is_binary(path: &CStr) -> bool {
    let mut sample = [0; 128];
    let opened = nix::fcntl::open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
    let length = opened.and_then(|file| nix::unistd::read(file, &mut sample)).unwrap_or_default();
    let sample = &sample[..length];
    let is_end = |byte: &u8| *byte == b'\n' && !sample.starts_with(b"#!");
    sample.starts_with(b"\x7fELF") || sample.iter().take_while(|byte| !is_end(byte)).any(|byte| *byte == 0)
}
