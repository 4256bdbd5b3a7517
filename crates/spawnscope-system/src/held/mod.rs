//! Starts the command and holds it before its exec until a collector is attached. The command gets
//! the terminal, files, signals and user that it would have without spawnscope. If the recorder
//! dies first, the command never runs. `program` finds the command's file, `prepared` contains what
//! its process needs, `inheritance` restores the state that spawnscope has changed, and `moved` has
//! the state that a fork does not hand on.

pub mod inheritance;
mod moved;
mod prepared;
mod program;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, fork};

pub use self::prepared::Identity;
use self::prepared::PreparedCommand;
pub use self::program::find_program;
use crate::process::pidfd;
use spawnscope_data::event::Pid;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The file does not exist, or PATH has no such command.
    #[error("failed to run '{0}': command not found{hint}", hint = hint(.0))]
    NotFound(String),
    #[error("failed to run '{0}': {1}")]
    NotExecutable(String, io::Error),
    /// The file exists, but its interpreter or dynamic loader does not.
    #[error("failed to run '{0}': the interpreter named in its `#!` line, or its dynamic loader, is missing")]
    NoInterpreter(String),
    /// An argument or environment string contains a NUL, which exec cannot pass.
    #[error("failed to run '{0}': an argument contains a NUL character")]
    Nul(String),
    #[error("failed to start '{0}': {1}")]
    Failed(String, io::Error),
}

fn hint(name: &str) -> &'static str {
    if name.starts_with('-') { " (no option has this name)" } else { "" }
}

/// Executes a command in this process, with everything that this process has inherited, and with
/// these variables set. Returns only if that fails.
#[must_use]
pub fn execute(command: &[OsString], variables: &[(OsString, OsString)]) -> StartError {
    let mask = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
    match PreparedCommand::new(command, None, variables, mask) {
        Ok(prepared) => execution_failed(name_of(command), prepared.execute().into()),
        Err(error) => error,
    }
}

fn name_of(command: &[OsString]) -> String {
    command.first().map_or_else(String::new, |given| given.to_string_lossy().into_owned())
}

/// A command that exists as a process but has not been executed yet.
#[derive(Debug)]
pub struct HeldCommand {
    path: PathBuf,
    pid: Pid,
    /// The write end of a pipe on which the process waits for its release.
    go: OwnedFd,
    command: ReleasedCommand,
}

impl HeldCommand {
    /// Creates the process. `variables` are added to the command's environment, and `mask` will be
    /// its signal mask.
    pub fn start(
        command: &[OsString],
        identity: Option<Identity>,
        variables: &[(OsString, OsString)],
        mask: &SigSet,
    ) -> Result<HeldCommand, StartError> {
        let name = name_of(command);
        let prepared = PreparedCommand::new(command, identity, variables, *mask)?;
        let failed = |error: nix::Error| StartError::Failed(name.clone(), error.into());
        let (release, go) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        let (failure, report) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        // SAFETY: the child only makes system calls, on memory prepared before the fork.
        let child = match unsafe { fork() }.map_err(failed)? {
            ForkResult::Child => run_child(&prepared, release.as_fd(), go, report.as_fd()),
            ForkResult::Parent { child } => child,
        };
        let pid = Pid(child.as_raw());
        let pidfd = pidfd(pid).map_err(|error| StartError::Failed(name.clone(), error))?;
        Ok(HeldCommand { path: prepared.file, pid, go, command: ReleasedCommand { name, pidfd, failure } })
    }

    pub fn pid(&self) -> Pid {
        self.pid
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Releases the command, and waits until it has executed its program or has failed to do so.
    /// Returns a pidfd of the process. If that fails, the process is gone.
    pub fn release(self) -> Result<OwnedFd, StartError> {
        self.release_without_waiting()?.outcome()
    }

    /// Releases the command without waiting for its exec. If that fails, the command never runs.
    pub fn release_without_waiting(self) -> Result<ReleasedCommand, StartError> {
        match nix::unistd::write(&self.go, b"g") {
            Ok(_) => Ok(self.command),
            Err(error) => Err(StartError::Failed(self.command.name, error.into())),
        }
    }
}

#[derive(Debug)]
pub struct ReleasedCommand {
    name: String,
    pidfd: OwnedFd,
    /// The read end of a pipe to which the process writes the errno of a failed exec.
    failure: OwnedFd,
}

impl ReleasedCommand {
    /// Waits until the command has executed its program or has failed to do so, and returns a pidfd
    /// of the process, even if a signal has killed the process before the exec. If it has failed,
    /// the process is gone.
    pub fn outcome(self) -> Result<OwnedFd, StartError> {
        let mut errno = [0u8; 4];
        // The exec closes the pipe: end of file means success.
        match nix::unistd::read(&self.failure, &mut errno) {
            Ok(4) => Err(execution_failed(self.name, io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))),
            _ => Ok(self.pidfd),
        }
    }
}

/// Returns the error for a failed exec. The file existed a moment ago, so ENOENT refers to its
/// interpreter or loader.
fn execution_failed(name: String, error: io::Error) -> StartError {
    match error.raw_os_error() {
        Some(libc::ENOENT) => StartError::NoInterpreter(name),
        _ => StartError::NotExecutable(name, error),
    }
}

/// Runs in the child: waits to be released, then becomes the command.
fn run_child(prepared: &PreparedCommand, release: BorrowedFd<'_>, go: OwnedFd, report: BorrowedFd<'_>) -> ! {
    // Closes the child's copy of the write end. Otherwise the child would not notice if the
    // recorder dies.
    drop(go);
    let mut byte = [0u8; 1];
    if nix::unistd::read(release, &mut byte) == Ok(1) {
        let errno = prepared.execute() as i32;
        // SAFETY: a plain system call on a buffer of this frame.
        unsafe { libc::write(report.as_raw_fd(), errno.to_ne_bytes().as_ptr().cast(), 4) };
    }
    // SAFETY: exits at once; none of the parent's code runs here.
    unsafe { libc::_exit(127) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use nix::sys::wait::{WaitStatus, waitpid};

    use super::*;

    fn start(command: &[&str]) -> Result<HeldCommand, StartError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        HeldCommand::start(&command, None, &[], &SigSet::empty())
    }

    #[test]
    fn a_missing_command_is_distinguished_from_one_that_cannot_be_executed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("plain");
        std::fs::write(&file, "text").unwrap();
        assert!(matches!(start(&["/no/such/file"]), Err(StartError::NotFound(_))));
        assert!(matches!(start(&["no-such-command-anywhere"]), Err(StartError::NotFound(_))));
        assert!(matches!(start(&[""]), Err(StartError::NotFound(_))));
        assert!(matches!(start(&[file.to_str().unwrap()]), Err(StartError::NotExecutable(..))));
        assert!(matches!(start(&["/"]), Err(StartError::NotExecutable(..))));
        assert!(matches!(start(&[&format!("{}/x", file.display())]), Err(StartError::NotExecutable(..))));
        assert!(matches!(start(&["true", "a\0b"]), Err(StartError::Nul(_))));
    }

    fn run_file(file: &Path, content: &[u8]) -> (Result<(), StartError>, WaitStatus) {
        std::fs::write(file, content).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let held = start(&[file.to_str().unwrap(), "7"]).unwrap();
        let pid = nix::unistd::Pid::from_raw(held.pid().0);
        let released = held.release();
        (released.map(drop), waitpid(pid, None).unwrap())
    }

    #[test]
    fn a_missing_interpreter_is_an_error_but_a_script_without_one_is_run_by_the_shell() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        let (released, _) = run_file(&file, b"#!/no/such/interpreter\n");
        assert!(matches!(released, Err(StartError::NoInterpreter(_))));
        let (released, status) = run_file(&file, b"exit $1\n");
        assert!(released.is_ok());
        assert!(matches!(status, WaitStatus::Exited(_, 7)));
    }

    #[test]
    fn a_damaged_program_is_not_run_by_the_shell() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        for content in [&b"\x7fELF, damaged"[..], b"exit 0 \0\n", b"#!\n\0"] {
            let (released, _) = run_file(&file, content);
            assert!(matches!(released, Err(StartError::NotExecutable(..))), "{content:?}: {released:?}");
        }
        let (released, _) = run_file(&file, b"exit 0\n\0 data");
        assert!(released.is_ok(), "a script that extracts an archive");
    }

    #[test]
    fn a_held_command_that_is_not_released_never_runs() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trace");
        let held = start(&["touch", file.to_str().unwrap()]).unwrap();
        let pid = nix::unistd::Pid::from_raw(held.pid().0);
        drop(held);
        assert!(matches!(waitpid(pid, None), Ok(WaitStatus::Exited(_, 127))));
        assert!(!file.exists());
    }
}
