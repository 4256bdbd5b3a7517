//! The open pipes and directories of a process, by descriptor. Pipes show which process ended a
//! wait: the one that wrote to the other end, or closed it last. Directories are needed for
//! `fchdir`. Of other files, only their existence is kept.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use spawnscope_data::event::{Nanos, TaskId};

/// Maximum time from the beginning of an exit until the files are closed.
pub const MAX_CLOSING: Nanos = Nanos(1_000_000);

/// What a thread did to a pipe, and when.
type Act = Cell<Option<(TaskId, Nanos)>>;

/// What can end a wait for a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Written,
    Read,
    Closed,
    Any,
}

/// A pipe, or a pair of sockets. Its last events are kept, because a wait is examined when it ends.
#[derive(Debug, Default)]
pub struct Pipe {
    /// Its inode; with `-y` that of the kernel, otherwise one that this import gave it.
    pub inode: u64,
    pub is_socket: bool,
    pub written: Act,
    pub read: Act,
    /// The last time that a process closed a descriptor of it.
    pub closed: Act,
}

impl Pipe {
    /// Returns what ended a wait between two instants, if something that a thread did to the pipe
    /// can have ended it.
    pub fn waker(&self, from: Nanos, to: Nanos, waiter: TaskId, awaited: Awaited) -> Option<(TaskId, Nanos)> {
        let acts = [(Awaited::Written, &self.written), (Awaited::Read, &self.read), (Awaited::Closed, &self.closed)];
        let others = acts.iter().filter_map(|(kind, act)| act.get().map(|(task, at)| (*kind, task, at)));
        let can_end = |(kind, task, at): &(Awaited, TaskId, Nanos)| {
            // A process that exits or executes a program closes its files some time later.
            let since = if *kind == Awaited::Closed { Nanos(from.0.saturating_sub(MAX_CLOSING.0)) } else { from };
            *task != waiter && (awaited == *kind || awaited == Awaited::Any) && (since..=to).contains(at)
        };
        let last = others.filter(can_end).max_by_key(|(.., at)| *at);
        last.map(|(kind, task, at)| (task, if kind == Awaited::Closed { to } else { at }))
    }
}

/// A file that is kept.
#[derive(Clone, Debug)]
pub enum File {
    Pipe(Rc<Pipe>),
    Directory(Rc<[u8]>),
    /// The file that the process executes.
    Program,
    /// Another file that ends no wait.
    Other,
}

#[derive(Clone, Debug)]
struct Descriptor {
    file: File,
    closes_at_exec: bool,
}

/// Maximum number of descriptors that are kept for a process.
const MAX_DESCRIPTORS: usize = 1_024;

/// The descriptors of a process. A child shares those of its parent until one of them changes its
/// own.
#[derive(Clone, Debug, Default)]
pub struct Descriptors(Rc<BTreeMap<i64, Descriptor>>);

impl Descriptors {
    pub fn open(&mut self, descriptor: i64, file: File, closes_at_exec: bool) {
        if self.0.len() < MAX_DESCRIPTORS || self.0.contains_key(&descriptor) {
            Rc::make_mut(&mut self.0).insert(descriptor, Descriptor { file, closes_at_exec });
        }
    }

    pub fn pipe(&self, descriptor: i64) -> Option<&Rc<Pipe>> {
        match &self.0.get(&descriptor)?.file {
            File::Pipe(pipe) => Some(pipe),
            File::Directory(_) | File::Program | File::Other => None,
        }
    }

    pub fn directory(&self, descriptor: i64) -> Option<&Rc<[u8]>> {
        match &self.0.get(&descriptor)?.file {
            File::Directory(path) => Some(path),
            File::Pipe(_) | File::Program | File::Other => None,
        }
    }

    /// Whether a descriptor may be one of the file that the process executes. It is unknown what
    /// the descriptors are that a log does not show being opened.
    pub fn may_be_program(&self, descriptor: i64) -> bool {
        self.0.get(&descriptor).is_none_or(|descriptor| matches!(descriptor.file, File::Program))
    }

    /// Whether a descriptor is one of a file that ends no wait.
    pub fn is_other(&self, descriptor: i64) -> bool {
        self.0.get(&descriptor).is_some_and(|descriptor| !matches!(descriptor.file, File::Pipe(_)))
    }

    /// Duplicates a descriptor, which closes the file that had the new number.
    pub fn duplicate(&mut self, from: i64, to: i64, closes_at_exec: bool, act: (TaskId, Nanos)) {
        let copied = self.0.get(&from).map(|descriptor| descriptor.file.clone());
        if from != to {
            self.close(to, act);
        }
        if let Some(file) = copied {
            self.open(to, file, closes_at_exec);
        }
    }

    pub fn set_closes_at_exec(&mut self, descriptor: i64, closes_at_exec: bool) {
        if let Some(found) = self.0.get(&descriptor).filter(|found| found.closes_at_exec != closes_at_exec) {
            let changed = Descriptor { closes_at_exec, ..found.clone() };
            Rc::make_mut(&mut self.0).insert(descriptor, changed);
        }
    }

    pub fn close(&mut self, descriptor: i64, act: (TaskId, Nanos)) {
        if !self.0.contains_key(&descriptor) {
            return;
        }
        if let Some(Descriptor { file: File::Pipe(pipe), .. }) = Rc::make_mut(&mut self.0).remove(&descriptor) {
            pipe.closed.set(Some(act));
        }
    }

    pub fn close_range(&mut self, first: i64, last: i64, act: (TaskId, Nanos)) {
        let open: Vec<i64> = self.0.range(first..=last.max(first)).map(|(descriptor, _)| *descriptor).collect();
        open.into_iter().for_each(|descriptor| self.close(descriptor, act));
    }

    /// Closes what an exec closes.
    pub fn exec(&mut self, act: (TaskId, Nanos)) {
        let closed: Vec<i64> = self.closed_by_exec().collect();
        closed.into_iter().for_each(|descriptor| self.close(descriptor, act));
    }

    /// An exec that may succeed begins.
    pub fn begin_exec(&self, act: (TaskId, Nanos)) {
        self.closed_by_exec().filter_map(|number| self.pipe(number)).for_each(|pipe| pipe.closed.set(Some(act)));
    }

    fn closed_by_exec(&self) -> impl Iterator<Item = i64> {
        self.0.iter().filter(|(_, descriptor)| descriptor.closes_at_exec).map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(task: u64, at: u64) -> (TaskId, Nanos) {
        (TaskId(task), Nanos(at))
    }

    #[test]
    fn a_pipe_is_followed_through_copies_and_execs() {
        let pipe = Rc::new(Pipe::default());
        let mut parent = Descriptors::default();
        parent.open(3, File::Pipe(Rc::clone(&pipe)), true);
        parent.open(4, File::Pipe(Rc::clone(&pipe)), true);
        let mut child = parent.clone();
        child.duplicate(4, 1, false, act(2, 5));
        child.exec(act(2, 10));
        assert!(child.pipe(4).is_none() && child.pipe(1).is_some());
        assert_eq!(pipe.closed.get(), Some(act(2, 10)));
        child.close_range(0, i64::MAX, act(2, 20));
        assert_eq!(pipe.waker(Nanos(11), Nanos(20), TaskId(1), Awaited::Any), Some(act(2, 20)));
        assert_eq!(pipe.waker(Nanos(11), Nanos(19), TaskId(1), Awaited::Any), None);
        assert_eq!(
            pipe.waker(Nanos(11), Nanos(20), TaskId(2), Awaited::Any),
            None,
            "a thread does not end its own wait"
        );
        parent.close_range(4, 3, act(1, 30));
        assert!(parent.pipe(3).is_some());
    }
}
