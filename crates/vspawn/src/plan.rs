//! A command made ready: every string, array and decision that a child needs, so that spawning it allocates nothing.

use std::ffi::{CString, c_char};
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::child::Job;
use crate::descriptors::{Move, NULL_DEVICE};
use crate::error::{Error, Stage};
use crate::stdio::Source;
use crate::sys::{Errno, SignalSet};

/// Strings as execve takes them: pointers to each, ended by NULL.
pub(crate) struct StringArray {
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are to the strings beside them, which nobody changes.
unsafe impl Send for StringArray {}
// SAFETY: as above.
unsafe impl Sync for StringArray {}

impl StringArray {
    pub(crate) fn new(strings: Vec<CString>) -> StringArray {
        let ends = std::iter::once(std::ptr::null());
        let pointers = strings.iter().map(|string| string.as_ptr()).chain(ends).collect();
        StringArray {
            _strings: strings,
            pointers,
        }
    }

    pub(crate) fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Who the child becomes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) groups: Option<Vec<u32>>,
}

/// A resource limit: soft and hard.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    pub(crate) resource: u32,
    pub(crate) values: [u64; 2],
}

/// A descriptor that the child gets.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) source: Source,
    pub(crate) target: i32,
}

/// A function of the caller's, run in a forked child.
pub(crate) type Hook = Arc<dyn Fn() -> Result<(), Errno> + Send + Sync>;

/// All that a child needs before its exec. Never changed.
pub(crate) struct Plan {
    /// What is executed, for messages.
    pub(crate) program: String,
    pub(crate) candidates: Vec<CString>,
    pub(crate) argv: StringArray,
    pub(crate) envp: StringArray,
    pub(crate) cwd: Option<CString>,
    pub(crate) chroot: Option<CString>,
    /// Sorted by target, without `Source::Inherit`.
    pub(crate) placements: Vec<Placement>,
    pub(crate) highest_target: i32,
    /// The descriptors that stay open with `close_others`: sorted, each once.
    pub(crate) kept: Vec<i32>,
    pub(crate) close_others: bool,
    pub(crate) umask: Option<u32>,
    pub(crate) new_session: bool,
    pub(crate) controlling_terminal: Option<i32>,
    pub(crate) process_group: Option<i32>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) nice: Option<i32>,
    pub(crate) identity: Option<Identity>,
    pub(crate) signal_mask: SignalSet,
    pub(crate) default_signals: SignalSet,
    pub(crate) ignored_signals: SignalSet,
    pub(crate) cgroup: Option<Arc<OwnedFd>>,
    pub(crate) parent_death_signal: Option<i32>,
    pub(crate) pre_exec: Option<Hook>,
    pub(crate) fork: bool,
}

impl Plan {
    /// Writes the moves for the descriptors of this spawn: pipes have new numbers every time.
    ///
    /// # Safety
    /// `moves` has room for one for each placement, and nobody else uses it.
    pub(crate) unsafe fn write_moves(&self, moves: *mut Move, pipe_end: impl Fn(i32) -> i32) {
        let targets = &self.placements;
        for (index, placement) in self.placements.iter().enumerate() {
            let target = placement.target;
            let source = match &placement.source {
                Source::Fd(fd) => fd.as_raw_fd(),
                Source::Number(fd) => *fd,
                Source::Piped => pipe_end(target),
                Source::Null | Source::Inherit => NULL_DEVICE,
            };
            let taken = targets.binary_search_by_key(&source, |other| other.target).is_ok();
            // SAFETY: the caller's promise.
            unsafe {
                moves.add(index).write(Move {
                    source,
                    target,
                    blocked: taken && source != target,
                });
            }
        }
    }

    /// The highest descriptor that must still be there once the child has a table of its own.
    pub(crate) fn highest_needed(&self, moves: &[Move]) -> i32 {
        let sources = moves.iter().map(|a_move| a_move.source);
        let needed = sources
            .chain(self.kept.iter().copied())
            .chain(self.controlling_terminal);
        needed.max().unwrap_or(2)
    }

    /// What a child that failed was doing.
    pub(crate) fn error(&self, job: &Job, stage: Stage, index: usize, errno: i32) -> Error {
        Error::new(stage, errno, self.action(job, stage, index, errno))
    }

    fn action(&self, job: &Job, stage: Stage, index: usize, errno: i32) -> String {
        let path = |path: &Option<CString>| path.as_ref().map_or(String::new(), lossy);
        match stage {
            Stage::Signals => "set the child's signals".to_owned(),
            Stage::UnshareFiles => "give the child a file table of its own".to_owned(),
            Stage::Session => "begin a session".to_owned(),
            Stage::ControllingTerminal => {
                let fd = self.controlling_terminal.unwrap_or_default();
                format!("take the terminal at descriptor {fd} as controlling terminal")
            }
            Stage::ProcessGroup => match self.process_group {
                Some(0) | None => "begin a process group".to_owned(),
                Some(group) => format!("join process group {group}"),
            },
            Stage::OpenNull => format!("open /dev/null for descriptor {}", self.target(index)),
            Stage::Dup => format!("dup of {} to {}", self.source(job, index), self.target(index)),
            Stage::Nice => format!("change the niceness by {}", self.nice.unwrap_or_default()),
            Stage::ResourceLimit => self.limits.get(index).map_or(String::new(), |limit| {
                let [soft, hard] = limit.values;
                format!("set resource limit {} to {soft} (hard {hard})", limit.resource)
            }),
            Stage::Chroot => format!("chroot to {}", path(&self.chroot)),
            Stage::Groups => "set the supplementary groups".to_owned(),
            Stage::Group => format!("become group {}", self.identity_number(|identity| identity.gid)),
            Stage::User => format!("become user {}", self.identity_number(|identity| identity.uid)),
            Stage::Chdir => format!("chdir to {}", path(&self.cwd)),
            Stage::CloseOthers => "close all other descriptors".to_owned(),
            Stage::ParentDeath => "ask for a signal at the parent's death".to_owned(),
            Stage::PreExec => "run the pre_exec function".to_owned(),
            _ => match self.candidates.as_slice() {
                [] | [_] => format!("exec {}", self.program),
                several => match several.get(index) {
                    Some(path) if errno != libc::ENOENT => format!("exec {}", lossy(path)),
                    _ => format!("exec {}, which is in no directory of PATH", self.program),
                },
            },
        }
    }

    fn target(&self, index: usize) -> i32 {
        self.placements.get(index).map_or(-1, |placement| placement.target)
    }

    /// The parent's number, as the caller knows it.
    fn source(&self, job: &Job, index: usize) -> String {
        match self.placements.get(index).map(|placement| &placement.source) {
            Some(Source::Fd(fd)) => fd.as_raw_fd().to_string(),
            Some(Source::Number(fd)) => fd.to_string(),
            Some(Source::Piped) => "a pipe".to_owned(),
            _ => format!("descriptor {index} of {}", job.move_count),
        }
    }

    fn identity_number(&self, of: impl Fn(&Identity) -> Option<u32>) -> u32 {
        self.identity.as_ref().and_then(of).unwrap_or_default()
    }
}

fn lossy(string: &CString) -> String {
    string.to_string_lossy().into_owned()
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({})", self.program)
    }
}
