//! A prepared command: every string, array and decision that a child needs, so that spawning it
//! allocates nothing.

pub(crate) mod environment;
mod prepare;
mod strings;

use std::ffi::{CStr, CString};
use std::fmt;
use std::os::fd::AsRawFd;

use self::environment::Environment;
use self::strings::StringArray;
use crate::error::{Error, Stage};
use crate::request::{Action, Attributes, Identity};
use crate::stdio::Source;

/// A descriptor that the child gets.
#[derive(Debug)]
pub(crate) struct Placement {
    pub(crate) source: Source,
    pub(crate) target: i32,
}

/// A descriptor to copy from the parent's number to the child's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    /// The parent's descriptor, or `NULL_DEVICE`.
    pub(crate) source: i32,
    pub(crate) target: i32,
    /// Whether the source's number is another move's target, so that the source must be copied away
    /// first.
    pub(crate) is_source_a_target: bool,
}

/// The value of [`Move::source`] for a target that gets `/dev/null`.
pub(crate) const NULL_DEVICE: i32 = -1;

/// Everything that a child needs before its exec. Immutable.
pub(crate) struct Plan {
    /// The program, for messages.
    pub(crate) program: String,
    /// The paths that the child tries to execute, in this order.
    pub(crate) candidates: StringArray,
    pub(crate) argv: StringArray,
    pub(crate) envp: Environment,
    pub(crate) cwd: Option<CString>,
    pub(crate) chroot: Option<CString>,
    /// Sorted by target, without `Source::Inherit`.
    pub(crate) placements: Vec<Placement>,
    pub(crate) highest_target: i32,
    /// The descriptors that stay open with `close_others`, sorted and without duplicates.
    pub(crate) kept_descriptors: Vec<i32>,
    /// Its `identity` is complete: `groups` is set if the child drops root's.
    pub(crate) attributes: Attributes,
}

impl Plan {
    /// Writes the moves for the descriptors of one spawn. They differ between spawns, because pipes
    /// get new numbers each time.
    ///
    /// # Safety
    /// `moves` must have room for one move per placement, and no other code may use it.
    pub(crate) unsafe fn write_moves(&self, moves: *mut Move, pipe_end: impl Fn(i32) -> i32) {
        let targets = &self.placements;
        for (index, placement) in self.placements.iter().enumerate() {
            let target = placement.target;
            let source = match &placement.source {
                Source::Stdout => self.stdout_source(&pipe_end),
                source => source_number(source, target, &pipe_end),
            };
            let is_target = targets.binary_search_by_key(&source, |other| other.target).is_ok();
            // SAFETY: the caller's promise.
            unsafe {
                moves.add(index).write(Move { source, target, is_source_a_target: is_target && source != target });
            }
        }
    }

    /// Returns the parent's descriptor that becomes the child's standard output: by default, the
    /// parent's own standard output.
    fn stdout_source(&self, pipe_end: &impl Fn(i32) -> i32) -> i32 {
        let stdout = self.placements.iter().find(|placement| placement.target == 1);
        stdout.map_or(1, |stdout| source_number(&stdout.source, 1, pipe_end))
    }

    /// Returns the highest descriptor that the child still needs once it has its own table.
    pub(crate) fn highest_needed(&self, moves: &[Move]) -> i32 {
        let sources = moves.iter().map(|a_move| a_move.source);
        let needed = sources.chain(self.kept_descriptors.iter().copied()).chain(self.attributes.controlling_terminal);
        needed.max().unwrap_or(2)
    }

    /// Returns the error for a step that failed in the child.
    pub(crate) fn error(&self, stage: Stage, index: usize, errno: i32) -> Error {
        Error::new(stage, errno, self.action(stage, index, errno))
    }

    fn action(&self, stage: Stage, index: usize, errno: i32) -> String {
        match stage {
            Stage::Clone => "move the child to its cgroup".to_owned(),
            Stage::Signals => "set the child's signals".to_owned(),
            Stage::UnshareFiles => "give the child a file table of its own".to_owned(),
            Stage::Session => "begin a session".to_owned(),
            Stage::ControllingTerminal => {
                let fd = self.attributes.controlling_terminal.unwrap_or_default();
                format!("take the terminal at descriptor {fd} as controlling terminal")
            }
            Stage::ProcessGroup => match self.attributes.process_group {
                Some(0) | None => "begin a process group".to_owned(),
                Some(group) => format!("join process group {group}"),
            },
            Stage::OpenNull => format!("open /dev/null for descriptor {}", self.target(index)),
            Stage::Dup => format!("dup {} to {}", self.source_name(index), self.target(index)),
            Stage::Nice => format!("change the niceness by {}", self.attributes.nice.unwrap_or_default()),
            Stage::ResourceLimit => self.attributes.limits.get(index).map_or(String::new(), |limit| {
                let [soft, hard] = limit.values;
                format!("set resource limit {} to {soft} (hard {hard})", limit.resource)
            }),
            Stage::Chroot => format!("chroot to {}", self.chroot.as_ref().map_or(String::new(), to_lossy_string)),
            Stage::Groups => "set the supplementary groups".to_owned(),
            Stage::Group => self.become_action("group", |identity| identity.gid),
            Stage::User => self.become_action("user", |identity| identity.uid),
            Stage::Chdir => format!("chdir to {}", self.cwd.as_ref().map_or(String::new(), to_lossy_string)),
            Stage::FileAction => self.attributes.actions.get(index).map_or(String::new(), Action::describe),
            Stage::Scheduler => match self.attributes.scheduler {
                Some((policy, priority)) if index == 0 => {
                    format!("set scheduling policy {policy} with priority {priority}")
                }
                _ => "set the CPUs".to_owned(),
            },
            Stage::NoNewPrivileges => "give up the right to gain privileges".to_owned(),
            Stage::CloseOthers => "close all other descriptors".to_owned(),
            Stage::ParentDeath => "ask for a signal at the parent's death".to_owned(),
            Stage::PreExec => "run the pre_exec function".to_owned(),
            _ => self.exec_action(index, errno),
        }
    }

    fn exec_action(&self, index: usize, errno: i32) -> String {
        match self.candidates.pointers() {
            [] | [_] => format!("exec {}", self.program),
            several => match several.get(index) {
                Some(path) if errno != libc::ENOENT => {
                    // SAFETY: a string of the array, ended by NUL.
                    let path = unsafe { CStr::from_ptr(*path) };
                    format!("exec {}", path.to_string_lossy())
                }
                _ => format!("exec {}, which is in no directory of PATH", self.program),
            },
        }
    }

    fn target(&self, index: usize) -> i32 {
        self.placements.get(index).map_or(-1, |placement| placement.target)
    }

    /// Names the source of a placement as the caller knows it.
    fn source_name(&self, index: usize) -> String {
        match self.placements.get(index).map(|placement| &placement.source) {
            Some(Source::Fd(fd)) => fd.as_raw_fd().to_string(),
            Some(Source::Number(fd)) => fd.to_string(),
            Some(Source::Piped) => "a pipe".to_owned(),
            Some(Source::Stdout) => "standard output".to_owned(),
            _ => "a descriptor".to_owned(),
        }
    }

    fn become_action(&self, kind: &str, id: impl Fn(&Identity) -> Option<u32>) -> String {
        match self.attributes.identity.as_ref().and_then(id) {
            Some(id) => format!("become {kind} {id}"),
            None => format!("set the effective {kind} id to the real one"),
        }
    }
}

/// Returns the parent's descriptor that becomes the child's `target`, or `NULL_DEVICE`.
fn source_number(source: &Source, target: i32, pipe_end: &impl Fn(i32) -> i32) -> i32 {
    match source {
        Source::Fd(fd) => fd.as_raw_fd(),
        Source::Number(fd) => *fd,
        Source::Piped => pipe_end(target),
        // Reached only if the child's standard output has `Source::Stdout` itself. It is then the
        // parent's.
        Source::Stdout => 1,
        Source::Null | Source::Inherit => NULL_DEVICE,
    }
}

fn to_lossy_string(string: &CString) -> String {
    string.to_string_lossy().into_owned()
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plan({})", self.program)
    }
}
