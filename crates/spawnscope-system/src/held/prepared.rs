//! Everything that the command's process needs, allocated before the fork. Between fork and exec,
//! only system calls are allowed, because another thread may have held the allocator's lock during
//! the fork.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use nix::fcntl::OFlag;
use nix::sys::signal::SigSet;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid};

use super::moved::MovedAttributes;
use super::{StartError, find_program, inheritance, name_of};
use crate::exec_strings::ExecStrings;

/// The user that the command runs as, if it is not the recorder's user.
#[derive(Clone, Debug)]
pub struct Identity {
    pub uid: Uid,
    pub gid: Gid,
    pub groups: Vec<Gid>,
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

pub(super) struct PreparedCommand {
    pub(super) file: PathBuf,
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
    pub(super) fn new(
        command: &[OsString],
        identity: Option<Identity>,
        variables: &[(OsString, OsString)],
        mask: SigSet,
    ) -> Result<PreparedCommand, StartError> {
        let file = find_program(command.first().map_or(OsStr::new(""), OsString::as_os_str))?;
        let nul = || StartError::Nul(name_of(command));
        let path = CString::new(file.as_os_str().as_bytes()).map_err(|_| nul())?;
        let argv = command.iter().map(|argument| CString::new(argument.as_bytes()));
        let argv = argv.collect::<Result<Vec<_>, _>>().map_err(|_| nul())?;
        let identity_variables = identity.iter().flat_map(|identity| &identity.environment);
        let environment = ExecStrings::own_environment_with(identity_variables.chain(variables)).ok_or_else(nul)?;
        let mut shell_argv = vec![c"sh".to_owned(), path.clone()];
        shell_argv.extend(argv.iter().skip(1).cloned());
        Ok(PreparedCommand {
            file,
            path,
            argv: ExecStrings::new(argv),
            shell_argv: ExecStrings::new(shell_argv),
            environment,
            identity,
            mask,
            moved: MovedAttributes::take(&mask),
        })
    }

    pub(super) fn execute(&self) -> nix::Error {
        self.moved.give();
        inheritance::restore(&self.mask);
        if let Some(Err(error)) = self.identity.as_ref().map(Identity::assume) {
            return error;
        }
        match self.execute_file(&self.path, &self.argv) {
            // A script without `#!`: run it with the shell, as every shell does.
            nix::Error::ENOEXEC if !is_binary(&self.path) => self.execute_file(c"/bin/sh", &self.shell_argv),
            error => error,
        }
    }

    fn execute_file(&self, path: &CStr, argv: &ExecStrings) -> nix::Error {
        // SAFETY: the path ends with NUL, both lists end with NULL, and all of them live as long as
        // `self`.
        unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), self.environment.as_ptr()) };
        nix::Error::last()
    }
}

/// Whether a file that the kernel cannot execute is a program, not a script: of another machine, or
/// damaged. These are the rules of bash. A shell would read it as a script and fail with another
/// status than bash.
fn is_binary(path: &CStr) -> bool {
    let mut sample = [0; 128];
    let opened = nix::fcntl::open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty());
    let length = opened.and_then(|file| nix::unistd::read(file, &mut sample)).unwrap_or_default();
    let sample = &sample[..length];
    let is_end = |byte: &u8| *byte == b'\n' && !sample.starts_with(b"#!");
    sample.starts_with(b"\x7fELF") || sample.iter().take_while(|byte| !is_end(byte)).any(|byte| *byte == 0)
}
