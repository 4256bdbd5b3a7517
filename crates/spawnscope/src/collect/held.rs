//! Starts the command and holds it before its exec until a collector is attached. It runs with the terminal, files,
//! signals and user that it would have had without us; if the recorder dies first, it never runs.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::unistd::{AccessFlags, ForkResult, Gid, Uid, access, fork};

use crate::event::Pid;

/// Why the command cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such file, or none in PATH.
    #[error("run '{0}': command not found")]
    NotFound(String),
    /// The file is there but cannot be executed.
    #[error("run '{0}': {1}")]
    NotExecutable(String, io::Error),
    /// An argument or environment string has a NUL, which no program can receive.
    #[error("run '{0}': an argument contains a NUL character")]
    Nul(String),
    /// The process could not be created.
    #[error("start '{0}': {1}")]
    Failed(String, io::Error),
}

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

/// A command that exists as a process but has not begun.
#[derive(Debug)]
pub struct HeldCommand {
    name: String,
    pid: Pid,
    pidfd: OwnedFd,
    go: OwnedFd,
    failure: OwnedFd,
}

/// Everything the child needs, allocated before the fork: between fork and exec only system calls may happen.
struct Prepared {
    path: CString,
    argv: Vec<CString>,
    shell_argv: Vec<CString>,
    environment: Vec<CString>,
    identity: Option<Identity>,
    mask: SigSet,
}

impl HeldCommand {
    /// Creates the process. `mask` is the signal mask that the command is to have.
    ///
    /// # Errors
    /// When the command does not exist, cannot be executed, or no process can be created.
    pub fn start(command: &[OsString], identity: Option<Identity>, mask: &SigSet) -> Result<HeldCommand, StartError> {
        let name = command
            .first()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let path = find_program(command.first().map_or(OsStr::new(""), OsString::as_os_str), &name)?;
        let prepared = Prepared::new(&path, command, identity, *mask).ok_or_else(|| StartError::Nul(name.clone()))?;
        let failed = |error: nix::Error| StartError::Failed(name.clone(), error.into());
        let (wait, go) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        let (failure, tell) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        // SAFETY: the child makes only system calls, on memory that was prepared before.
        let child = match unsafe { fork() }.map_err(failed)? {
            ForkResult::Child => run_child(&prepared, wait.as_fd(), go, tell.as_fd()),
            ForkResult::Parent { child } => child,
        };
        let pidfd = rustix::process::Pid::from_raw(child.as_raw())
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()))
            .map_err(|error| StartError::Failed(name.clone(), error.into()))?;
        Ok(HeldCommand {
            name,
            pid: Pid(child.as_raw()),
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

    /// Lets it run. Returns when it has executed the program, or could not.
    ///
    /// # Errors
    /// When the program could not be executed; the process is gone then.
    pub fn release(self) -> Result<OwnedFd, StartError> {
        nix::unistd::write(&self.go, b"g").map_err(|error| StartError::Failed(self.name.clone(), error.into()))?;
        drop(self.go);
        let mut errno = [0u8; 4];
        // Closed by the exec: end of file is success.
        match nix::unistd::read(&self.failure, &mut errno) {
            Ok(4) => Err(exec_error(
                self.name,
                io::Error::from_raw_os_error(i32::from_ne_bytes(errno)),
            )),
            _ => Ok(self.pidfd),
        }
    }
}

fn exec_error(name: String, error: io::Error) -> StartError {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => StartError::NotFound(name),
        _ => StartError::NotExecutable(name, error),
    }
}

/// Looks a command up as a shell does.
fn find_program(command: &OsStr, name: &str) -> Result<PathBuf, StartError> {
    let check = |path: &Path| -> Result<(), StartError> {
        let not_executable = |error: io::Error| StartError::NotExecutable(name.to_owned(), error);
        let kind = std::fs::metadata(path).map_err(|error| exec_error(name.to_owned(), error))?;
        if kind.is_dir() {
            return Err(not_executable(io::Error::from_raw_os_error(libc::EISDIR)));
        }
        access(path, AccessFlags::X_OK).map_err(|error| not_executable(error.into()))
    };
    if command.as_bytes().contains(&b'/') {
        return check(Path::new(command)).map(|()| PathBuf::from(command));
    }
    let mut outcome = StartError::NotFound(name.to_owned());
    if command.is_empty() {
        return Err(outcome);
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    for directory in std::env::split_paths(&search) {
        let path = if directory.as_os_str().is_empty() {
            Path::new(".").join(command)
        } else {
            directory.join(command)
        };
        match check(&path) {
            Ok(()) => return Ok(path),
            Err(StartError::NotFound(_)) => {}
            Err(error) => outcome = error,
        }
    }
    Err(outcome)
}

impl Prepared {
    /// `None` when a string has a NUL.
    fn new(path: &Path, command: &[OsString], identity: Option<Identity>, mask: SigSet) -> Option<Prepared> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).ok();
        let path = text(path.as_os_str())?;
        let argv = command
            .iter()
            .map(|argument| text(argument))
            .collect::<Option<Vec<_>>>()?;
        let mut shell_argv = vec![c"sh".to_owned(), path.clone()];
        shell_argv.extend(argv.iter().skip(1).cloned());
        let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        for (name, value) in identity.iter().flat_map(|identity| &identity.environment) {
            environment.retain(|(other, _)| other != name);
            environment.push((name.clone(), value.clone()));
        }
        let environment = environment.into_iter().map(|(mut entry, value)| {
            entry.push("=");
            entry.push(value);
            CString::new(entry.into_vec()).ok()
        });
        Some(Prepared {
            path,
            argv,
            shell_argv,
            environment: environment.collect::<Option<_>>()?,
            identity,
            mask,
        })
    }

    /// Becomes the command; returns why not.
    fn execute(&self) -> nix::Error {
        let error = self
            .become_user()
            .err()
            .unwrap_or_else(|| execve(&self.path, &self.argv, &self.environment));
        // A script without `#!`: what execvp and every shell do.
        if error == nix::Error::ENOEXEC {
            execve(c"/bin/sh", &self.shell_argv, &self.environment)
        } else {
            error
        }
    }

    fn become_user(&self) -> nix::Result<()> {
        let Some(identity) = &self.identity else { return Ok(()) };
        nix::unistd::setgroups(&identity.groups)?;
        nix::unistd::setresgid(identity.gid, identity.gid, identity.gid)?;
        nix::unistd::setresuid(identity.uid, identity.uid, identity.uid)
    }
}

fn execve(path: &std::ffi::CStr, argv: &[CString], environment: &[CString]) -> nix::Error {
    nix::unistd::execve(path, argv, environment)
        .err()
        .unwrap_or(nix::Error::EINVAL)
}

/// The child: waits for the word to go, then becomes the command.
fn run_child(prepared: &Prepared, wait: BorrowedFd<'_>, go: OwnedFd, tell: BorrowedFd<'_>) -> ! {
    // Its own copy of the writing end must go, or the recorder's death would not be seen.
    drop(go);
    let mut word = [0u8; 1];
    if nix::unistd::read(wait, &mut word) == Ok(1) {
        restore_signals(&prepared.mask);
        let errno = prepared.execute() as i32;
        // SAFETY: a plain system call on a buffer of this frame.
        unsafe { libc::write(tell.as_raw_fd(), errno.to_ne_bytes().as_ptr().cast(), 4) };
    }
    // SAFETY: leaves at once; nothing of the parent's runs here.
    unsafe { libc::_exit(127) }
}

/// The command gets the mask and the SIGPIPE that we were started with.
fn restore_signals(mask: &SigSet) {
    if !SIGPIPE_WAS_IGNORED.load(Ordering::Relaxed) {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: sets a default disposition, no handler.
        let _ = unsafe { sigaction(Signal::SIGPIPE, &default) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(mask), None);
}

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Rust's runtime ignores SIGPIPE before `main`; what it was before that can only be seen by an initialiser.
extern "C" fn note_sigpipe() {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the disposition and changes nothing; all zeroes is a valid sigaction.
    let ignored = unsafe {
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    };
    SIGPIPE_WAS_IGNORED.store(ignored, Ordering::Relaxed);
}

#[used]
// SAFETY: the section holds functions of this type, called once before `main` on the only thread.
#[unsafe(link_section = ".init_array")]
static NOTE_SIGPIPE: extern "C" fn() = note_sigpipe;

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
        assert!(matches!(released, Err(StartError::NotFound(_))));
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
