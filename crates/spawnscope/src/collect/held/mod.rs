//! Starts the command and holds it before its exec until a collector is attached. It runs with the terminal, files,
//! signals and user that it would have had without us; if the recorder dies first, it never runs. `program` finds its
//! file, `prepared` is what its process needs, `inheritance` what it must not notice of us.

mod inheritance;
mod prepared;
mod program;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sys::signal::SigSet;
use nix::unistd::{ForkResult, fork};

pub use self::prepared::Identity;
use self::prepared::Prepared;
use crate::event::Pid;

/// Why the command cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such file, or none in PATH.
    #[error("failed to run '{0}': command not found")]
    NotFound(String),
    /// The file is there but cannot be executed.
    #[error("failed to run '{0}': {1}")]
    NotExecutable(String, io::Error),
    /// The file is there, but not the program that is to read it.
    #[error("failed to run '{0}': the interpreter that it names (its `#!` line, or its dynamic loader) is missing")]
    NoInterpreter(String),
    /// An argument or environment string has a NUL, which no program can receive.
    #[error("failed to run '{0}': an argument contains a NUL character")]
    Nul(String),
    /// The process could not be created.
    #[error("failed to start '{0}': {1}")]
    Failed(String, io::Error),
}

/// A command that exists as a process but has not begun.
#[derive(Debug)]
pub struct HeldCommand {
    name: String,
    path: PathBuf,
    pid: Pid,
    pidfd: OwnedFd,
    go: OwnedFd,
    failure: OwnedFd,
}

impl HeldCommand {
    /// Creates the process. `mask` is the signal mask that the command is to have.
    ///
    /// # Errors
    /// When the command does not exist, cannot be executed, or no process can be created.
    pub fn start(command: &[OsString], identity: Option<Identity>, mask: &SigSet) -> Result<HeldCommand, StartError> {
        let given = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        let name = given.to_string_lossy().into_owned();
        let path = program::find(given)?;
        let prepared = Prepared::new(&path, command, identity, *mask).ok_or_else(|| StartError::Nul(name.clone()))?;
        let failed = |error: nix::Error| StartError::Failed(name.clone(), error.into());
        let (wait, go) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        let (failure, tell) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        // SAFETY: the child makes only system calls, on memory that was prepared before.
        let child = match unsafe { fork() }.map_err(failed)? {
            ForkResult::Child => run_child(&prepared, wait.as_fd(), go, tell.as_fd()),
            ForkResult::Parent { child } => child,
        };
        let pid = Pid(child.as_raw());
        let pidfd = super::pidfd(pid).map_err(|error| StartError::Failed(name.clone(), error))?;
        Ok(HeldCommand {
            name,
            path,
            pid,
            pidfd,
            go,
            failure,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The file that it will execute.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets it run. Returns when it has executed the program, or could not.
    ///
    /// # Errors
    /// When the program could not be executed; the process is gone then.
    pub fn release(self) -> Result<OwnedFd, StartError> {
        self.let_go()?.outcome()
    }

    /// Lets it run, and does not wait for its exec.
    ///
    /// # Errors
    /// When the process cannot be told; it never runs then.
    pub fn let_go(self) -> Result<ReleasedCommand, StartError> {
        nix::unistd::write(&self.go, b"g").map_err(|error| StartError::Failed(self.name.clone(), error.into()))?;
        Ok(ReleasedCommand {
            name: self.name,
            pidfd: self.pidfd,
            failure: self.failure,
        })
    }
}

/// A command that was let go.
#[derive(Debug)]
pub struct ReleasedCommand {
    name: String,
    pidfd: OwnedFd,
    failure: OwnedFd,
}

impl ReleasedCommand {
    /// Waits until it has executed the program, or could not. A command that a signal ended before has a handle too.
    ///
    /// # Errors
    /// When the program could not be executed; the process is gone then.
    pub fn outcome(self) -> Result<OwnedFd, StartError> {
        let mut errno = [0u8; 4];
        // Closed by the exec: end of file is success.
        match nix::unistd::read(&self.failure, &mut errno) {
            Ok(4) => Err(execution_failed(
                self.name,
                io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
            )),
            _ => Ok(self.pidfd),
        }
    }
}

/// The file was there a moment ago: if something is not found, it is what the file needs.
fn execution_failed(name: String, error: io::Error) -> StartError {
    match error.raw_os_error() {
        Some(libc::ENOENT) => StartError::NoInterpreter(name),
        _ => StartError::NotExecutable(name, error),
    }
}

/// The child: waits for the word to go, then becomes the command.
fn run_child(prepared: &Prepared, wait: BorrowedFd<'_>, go: OwnedFd, tell: BorrowedFd<'_>) -> ! {
    // Its own copy of the writing end must go, or the recorder's death would not be seen.
    drop(go);
    let mut word = [0u8; 1];
    if nix::unistd::read(wait, &mut word) == Ok(1) {
        let errno = prepared.execute() as i32;
        // SAFETY: a plain system call on a buffer of this frame.
        unsafe { libc::write(tell.as_raw_fd(), errno.to_ne_bytes().as_ptr().cast(), 4) };
    }
    // SAFETY: leaves at once; nothing of the parent's runs here.
    unsafe { libc::_exit(127) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn start(command: &[&str]) -> Result<HeldCommand, StartError> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        HeldCommand::start(&command, None, &SigSet::empty())
    }

    #[test]
    fn a_command_that_is_not_there_is_told_from_one_that_cannot_be_executed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("plain");
        std::fs::write(&file, "text").unwrap();
        assert!(matches!(start(&["/no/such/file"]), Err(StartError::NotFound(_))));
        assert!(matches!(
            start(&["no-such-command-anywhere"]),
            Err(StartError::NotFound(_))
        ));
        assert!(matches!(start(&[""]), Err(StartError::NotFound(_))));
        assert!(matches!(
            start(&[file.to_str().unwrap()]),
            Err(StartError::NotExecutable(..))
        ));
        assert!(matches!(start(&["/"]), Err(StartError::NotExecutable(..))));
        assert!(matches!(start(&["true", "a\0b"]), Err(StartError::Nul(_))));
    }

    #[test]
    fn a_file_that_no_loader_takes_is_not_executable_but_a_bare_script_is_run_by_the_shell() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("program");
        let outcome = |content: &[u8]| {
            std::fs::write(&file, content).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            let held = start(&[file.to_str().unwrap(), "7"]).unwrap();
            let pid = nix::unistd::Pid::from_raw(held.pid().0);
            let released = held.release();
            (released.map(drop), nix::sys::wait::waitpid(pid, None).unwrap())
        };
        let (released, _) = outcome(b"#!/no/such/interpreter\n");
        assert!(matches!(released, Err(StartError::NoInterpreter(_))));
        let (released, status) = outcome(b"exit $1\n");
        assert!(released.is_ok());
        assert!(matches!(status, nix::sys::wait::WaitStatus::Exited(_, 7)));
    }

    #[test]
    fn a_held_command_never_runs_when_nobody_lets_it_go() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("trace");
        let held = start(&["touch", file.to_str().unwrap()]).unwrap();
        let pid = nix::unistd::Pid::from_raw(held.pid().0);
        drop(held);
        assert!(matches!(
            nix::sys::wait::waitpid(pid, None),
            Ok(nix::sys::wait::WaitStatus::Exited(_, 127))
        ));
        assert!(!file.exists());
    }
}
