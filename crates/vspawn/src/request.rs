//! What a command requests of its child besides its strings and descriptors. `Command` collects it,
//! and `Plan` carries it on to the child, so both have the same type.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::error::{Error, Stage};
use crate::sys::{Errno, SignalSet, signal_bit};

/// How the child is created.
///
/// ```
/// use vspawn::{Command, Mechanism};
///
/// assert!(Command::new("true").mechanism(Mechanism::Fork).status()?.success());
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The child shares the parent's memory until its exec, however large that memory is.
    #[default]
    Share,
    /// The child gets a copy of the parent's page tables, which dominates the cost for a large
    /// parent.
    Fork,
}

/// The properties of a child.
#[derive(Clone, Default)]
pub(crate) struct Attributes {
    pub(crate) close_others: bool,
    pub(crate) actions: Vec<Action>,
    pub(crate) umask: Option<u32>,
    pub(crate) new_session: bool,
    pub(crate) controlling_terminal: Option<i32>,
    pub(crate) process_group: Option<i32>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) nice: Option<i32>,
    /// The scheduling policy and its priority.
    pub(crate) scheduler: Option<(i32, i32)>,
    /// A set of CPUs in the kernel's format. If it is empty, the child inherits the parent's.
    pub(crate) affinity: Vec<u64>,
    pub(crate) no_new_privileges: bool,
    pub(crate) identity: Option<Identity>,
    /// `None`: the mask of the thread that starts the child.
    pub(crate) signal_mask: Option<SignalSet>,
    pub(crate) default_signals: SignalSet,
    pub(crate) ignored_signals: SignalSet,
    pub(crate) cgroup: Option<Arc<OwnedFd>>,
    pub(crate) parent_death_signal: Option<i32>,
    pub(crate) pre_exec: Option<Hook>,
    pub(crate) mechanism: Mechanism,
    /// Whether the child gets no pidfd.
    pub(crate) without_pidfd: bool,
}

impl Attributes {
    pub(crate) fn forks(&self) -> bool {
        self.mechanism == Mechanism::Fork
    }

    /// Whether all signals must be blocked from before the child's creation until its exec: in the
    /// parent, so that no handler of this thread runs within the critical section in `dumpable.rs`;
    /// in the child, so that a signal which arrives early has the effect that it would have after
    /// the exec, and the steps that signal or stop the child itself do not. Otherwise,
    /// CLONE_CLEAR_SIGHAND alone keeps the parent's handlers from running in the child, without two
    /// system calls.
    pub(crate) fn need_blocked_signals(&self) -> bool {
        // Only its own writes send a process one of these signals.
        let own_signals = signal_bit(libc::SIGPIPE) | signal_bit(libc::SIGXFSZ);
        self.identity.is_some()
            || self.pre_exec.is_some()
            || self.parent_death_signal.is_some()
            || !self.actions.is_empty()
            || self.ignored_signals | self.default_signals & !own_signals | self.signal_mask.unwrap_or(0) != 0
    }
}

/// One file action. Descriptor numbers are the child's.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Open { target: i32, path: CString, flags: i32, mode: u32 },
    Close(i32),
    CloseFrom(i32),
    Dup { source: i32, target: i32 },
    ChangeDirectory(CString),
    ChangeDirectoryTo(i32),
    Foreground(i32),
}

impl Action {
    /// Describes the action for an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Action::Open { target, path, .. } => format!("open {} as {target}", path.to_string_lossy()),
            Action::Close(fd) => format!("close {fd}"),
            Action::CloseFrom(first) => format!("close all descriptors from {first} on"),
            Action::Dup { source, target } => format!("dup {source} to {target}"),
            Action::ChangeDirectory(path) => format!("chdir to {}", path.to_string_lossy()),
            Action::ChangeDirectoryTo(fd) => format!("chdir to the directory at descriptor {fd}"),
            Action::Foreground(fd) => format!("become the foreground group of the terminal at descriptor {fd}"),
        }
    }

    /// Returns an error for an action that no child could carry out.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let fds = match self {
            Action::Open { target: fd, .. }
            | Action::Close(fd)
            | Action::CloseFrom(fd)
            | Action::ChangeDirectoryTo(fd)
            | Action::Foreground(fd) => [*fd, 0],
            Action::Dup { source, target } => [*source, *target],
            Action::ChangeDirectory(_) => [0, 0],
        };
        match fds.iter().any(|fd| *fd < 0) {
            true => Err(Error::new(Stage::Prepare, libc::EBADF, self.describe())),
            false => Ok(()),
        }
    }
}

/// The identity that the child takes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) groups: Option<Vec<u32>>,
    /// Whether the effective ids are set to the real ones.
    pub(crate) reset: bool,
}

/// A resource limit (`RLIMIT_*`), with its soft and its hard value.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) resource: u32,
    pub(crate) values: [u64; 2],
}

/// A function of the caller that runs in a forked child (`pre_exec`).
pub(crate) type Hook = Arc<dyn Fn() -> Result<(), Errno> + Send + Sync>;
