//! Errors: the step of a spawn that failed, its object, and the errno.

use std::fmt;
use std::io;

/// A step of spawning, waiting or killing.
///
/// ```
/// use vspawn::{Command, Stage};
///
/// let error = Command::new("true").current_dir("/nowhere").spawn().unwrap_err();
/// assert_eq!(error.stage(), Stage::Chdir);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u32)]
pub enum Stage {
    /// Preparing the command: it is invalid, or memory is short. No process was started.
    Prepare = 1,
    /// Making a pipe.
    Pipe,
    /// Mapping the child's stack.
    Stack,
    /// Blocking or restoring the caller's signals, or setting the child's.
    Signals,
    /// Creating the process.
    Clone,
    /// Giving the child its own file table.
    UnshareFiles,
    /// `setsid`.
    Session,
    /// Taking a controlling terminal.
    ControllingTerminal,
    /// `setpgid`.
    ProcessGroup,
    /// Opening `/dev/null`.
    OpenNull,
    /// Copying a file descriptor to its number in the child.
    Dup,
    /// Changing the niceness.
    Nice,
    /// Setting a resource limit.
    ResourceLimit,
    /// `chroot`.
    Chroot,
    /// `setgroups`.
    Groups,
    /// `setresgid`.
    Group,
    /// `setresuid`.
    User,
    /// `chdir`.
    Chdir,
    /// Closing all other file descriptors.
    CloseOthers,
    /// Requesting a signal at the parent's death.
    ParentDeath,
    /// The caller's function (`pre_exec`).
    PreExec,
    /// `execve`.
    Exec,
    /// Waiting for the process.
    Wait,
    /// Sending the process a signal.
    Kill,
    /// Reading the process's output or writing its input.
    Communicate,
    /// The timeout has expired.
    Timeout,
    /// The output exceeded its limit.
    Limit,
    /// A file action of the child: opening, closing or copying a descriptor, changing the
    /// directory, setting a terminal's foreground group.
    FileAction,
    /// Setting the scheduling policy or the CPUs.
    Scheduler,
    /// Giving up the right to gain privileges.
    NoNewPrivileges,
    /// Creating, resizing or opening a pseudo-terminal.
    Pty,
}

impl Stage {
    /// Returns the stage with this number, which a child has stored in shared memory.
    pub(crate) fn from_number(number: u32) -> Stage {
        use Stage::*;
        const IN_CHILD: [Stage; 20] = [
            Signals, UnshareFiles, Session, ControllingTerminal, ProcessGroup, OpenNull, Dup, Nice, ResourceLimit,
            Chroot, Groups, Group, User, Chdir, CloseOthers, ParentDeath, PreExec, FileAction, Scheduler,
            NoNewPrivileges,
        ];
        let stage = IN_CHILD.into_iter().find(|stage| *stage as u32 == number);
        stage.unwrap_or(Exec)
    }
}

/// A failure: the step that failed, its object, and the errno. It is displayed as a fragment that
/// fits after "failed to": `chdir to /x: No such file or directory (os error 2)`.
///
/// ```
/// let error = vspawn::Command::new("/etc/passwd").spawn().unwrap_err();
/// assert_eq!(format!("failed to {error}"), "failed to exec /etc/passwd: Permission denied (os error 13)");
///
/// let error = std::io::Error::from(error); // what `?` does in a function that returns `io::Result`
/// assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
/// assert_eq!(error.to_string(), "exec /etc/passwd: Permission denied (os error 13)");
/// assert_eq!(error.downcast::<vspawn::Error>().unwrap().raw_os_error(), libc::EACCES);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    stage: Stage,
    errno: i32,
    action: String,
}

impl Error {
    pub(crate) fn new(stage: Stage, errno: i32, action: impl Into<String>) -> Error {
        Error { stage, errno, action: action.into() }
    }

    pub(crate) fn invalid(action: impl Into<String>) -> Error {
        Error::new(Stage::Prepare, libc::EINVAL, action)
    }

    pub(crate) fn nul(what: &str) -> Error {
        Error::invalid(format!("pass {what}: it contains a NUL byte"))
    }

    /// Returns the step that failed.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("").spawn().unwrap_err().stage(), vspawn::Stage::Prepare);
    /// ```
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns the errno: usually the kernel's. It is `EINVAL` or `EBADF` for an invalid command,
    /// `ENOMEM` if an allocation failed, and `ETIMEDOUT` and `EMSGSIZE` for the timeout and the
    /// limit of [`Capture`](crate::Capture).
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("/nowhere").spawn().unwrap_err().raw_os_error(), libc::ENOENT);
    /// ```
    #[must_use]
    pub fn raw_os_error(&self) -> i32 {
        self.errno
    }

    /// Returns the failed action, without the errno: `chdir to /x`, `dup 5 to 1`, `exec /bin/x`.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("/nowhere").spawn().unwrap_err().action(), "exec /nowhere");
    /// ```
    #[must_use]
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Returns the [`std::io::ErrorKind`] of the errno.
    ///
    /// ```
    /// let error = vspawn::Command::new("/nowhere").spawn().unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// ```
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from_raw_os_error(self.errno).kind()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.action, io::Error::from_raw_os_error(self.errno))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.stage)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    /// Keeps the step, its object and the [`io::Error::kind`]. [`io::Error::downcast`] returns the
    /// `Error` with its errno; `raw_os_error` returns `None`, because an `io::Error` has either an
    /// errno or a text.
    fn from(error: Error) -> io::Error {
        io::Error::new(error.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_a_child_stored_is_decoded_from_its_number() {
        for stage in
            [Stage::Signals, Stage::Dup, Stage::CloseOthers, Stage::PreExec, Stage::NoNewPrivileges, Stage::Exec]
        {
            assert_eq!(Stage::from_number(stage as u32), stage);
        }
    }
}
