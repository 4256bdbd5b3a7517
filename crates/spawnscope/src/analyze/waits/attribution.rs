//! Waits tied to those they were for: a parent's wait in `read` to the child whose descendant wrote, in `wait4` to the
//! child that ended; a wait for permission to the scanner. Waits of one program in one way are summed up. How a single
//! wait divides is `split`'s.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

pub use super::split::Parts;
use super::split::{Interval, Splitter};
use super::{WaitedObject, is_blocked};
use crate::analyze::external_wait::{ExternalWait, external_wait_of};
use crate::analyze::launch::Command;
use crate::analyze::timeline::{ThreadIndex, Timelines};
use crate::analyze::tree::Forest;
use crate::event::{LeftCpu, Nanos, ObjectKind};
use crate::record::reader::{ObjectRef, Recording, SliceRow};

/// Generations between who waits and who woke it, after which the waker is taken for who it was for. Only a chain of
/// launches that is made to be long has more.
const MOST_GENERATIONS: usize = 1000;

/// Waits of one program, in one system call, on one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributedWaits {
    /// The program that waited, as people see it.
    pub command: Vec<u8>,
    /// The system call's number.
    pub syscall: Option<u16>,
    /// What it waited on.
    pub object: Option<AttributedObject>,
    /// Who it waited for, the most frequent first.
    pub on: Vec<WaitedFor>,
    /// Waits.
    pub count: u64,
    /// Their sum, divided.
    pub parts: Parts,
}

/// What waits were on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributedObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// Which one, when all waits were on the same.
    pub only: Option<OnlyObject>,
}

/// A single object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyObject {
    /// The file system it lies on: major << 20 | minor.
    pub device: u32,
    /// Its number there.
    pub inode: u64,
    /// Its path, where it has one.
    pub path: Option<Vec<u8>>,
}

/// Who was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitedFor {
    /// What it is to the one that waited.
    pub who: Who,
    /// How many of them.
    pub count: u64,
}

/// What somebody who was waited for is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Launches: children of the one that waited where it was for a descendant, else others.
    Launches {
        /// Their program, as people see it.
        command: Vec<u8>,
        /// The program that ended the wait, where that was another: a child's descendant.
        through: Option<Vec<u8>>,
    },
    /// A process that is not recorded, by its name.
    Process(Option<Vec<u8>>),
    /// A permission scanner, by its name.
    Scanner(Option<Vec<u8>>),
}

/// Sums up the waits that ended through a launch, a scanner or a process that is not recorded; the longest sum first. Those that
/// a timer, a disk or the network ended are no one's, and those among the threads of one process are its own affair.
#[must_use]
pub fn attributed_waits(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> Vec<AttributedWaits> {
    let mut collection = Collection {
        recording,
        forest,
        timelines,
        splitter: Splitter::new(forest, timelines),
        ends: HashMap::new(),
        sums: HashMap::new(),
    };
    for thread in 0..timelines.threads.len() as ThreadIndex {
        for slice in timelines.slices(thread).iter() {
            collection.add(thread, &slice);
        }
    }
    collection.finish()
}

/// What waits are summed up by.
type Key<'a> = (Command<'a>, Option<u16>, Option<ObjectKind>);

/// Who a wait was for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By<'a> {
    Launch {
        command: Command<'a>,
        through: Option<Command<'a>>,
    },
    Process(Option<&'a [u8]>),
    Scanner(Option<&'a [u8]>),
}

#[derive(Default)]
struct Sums<'a> {
    count: u64,
    parts: Parts,
    /// The object, as long as it is one.
    only: Option<ObjectRef>,
    /// Indices of the launches, none for others.
    on: HashMap<By<'a>, HashSet<u32>>,
}

struct Collection<'f, 'a> {
    recording: &'a Recording,
    forest: &'f Forest<'a>,
    timelines: &'f Timelines,
    splitter: Splitter<'f, 'a>,
    /// For launches that sleep: their children's ends.
    ends: HashMap<usize, Vec<ChildEnd>>,
    sums: HashMap<Key<'a>, Sums<'a>>,
}

/// From when to when a child was dead and not reaped.
struct ChildEnd {
    zombie: Nanos,
    reaped: Nanos,
    child: usize,
}

impl<'f, 'a> Collection<'f, 'a> {
    fn add(&mut self, thread: ThreadIndex, slice: &SliceRow) {
        let Some(wait) = Interval::of(slice, self.forest.end)
            .filter(|_| is_blocked(slice.reason) && slice.reason != LeftCpu::Stopped)
        else {
            return;
        };
        let waiter = self.timelines.threads[thread as usize].launch as usize;
        let Some((by, target)) = self.ended_by(thread, waiter, slice, &wait) else {
            return;
        };
        let parts = match target {
            Some(target) => self.splitter.split(target, &wait),
            None => Splitter::unknown(&wait),
        };
        let command = self.forest.command_at(waiter, wait.start);
        let key = (command, slice.syscall, slice.object.map(ObjectRef::kind));
        let sums = self.sums.entry(key).or_default();
        sums.only = slice
            .object
            .filter(|object| sums.count == 0 || sums.only == Some(*object));
        sums.count += 1;
        sums.parts.add(&parts);
        sums.on
            .entry(by)
            .or_default()
            .extend(target.map(|target| target as u32));
    }

    /// Who a wait was for, and which launch's doing the time is; `None` when it was for nobody.
    fn ended_by(
        &mut self,
        thread: ThreadIndex,
        waiter: usize,
        slice: &SliceRow,
        wait: &Interval,
    ) -> Option<(By<'a>, Option<usize>)> {
        let cause = self.timelines.cause(thread, slice);
        let cause = cause.map(|thread| self.timelines.threads[thread as usize].launch as usize);
        let name = |name| self.recording.texts.get(name);
        match (cause, external_wait_of(slice)) {
            // A recorded scanner's own phases do not say what a permission took.
            (Some(scanner), ExternalWait::Scanner(_)) => {
                Some((By::Scanner(Some(self.forest.launches[scanner].command.name)), None))
            }
            (None, ExternalWait::Scanner(scanner)) => Some((By::Scanner(scanner.map(name)), None)),
            (Some(waker), _) if waker == waiter => None,
            (Some(waker), _) => Some(self.launch(waiter, waker)),
            (None, ExternalWait::Process(process)) => Some((By::Process(process.map(name)), None)),
            (None, ExternalWait::Timer) => {
                let child = self.unreaped_child(waiter, wait)?;
                Some(self.launch(waiter, child))
            }
            (None, _) => None,
        }
    }

    fn launch(&self, waiter: usize, waker: usize) -> (By<'a>, Option<usize>) {
        let target = self.child_above(waiter, waker).unwrap_or(waker);
        let command_of = |index: usize| *self.forest.launches[index].command;
        let by = By::Launch {
            command: command_of(target),
            through: (command_of(waker) != command_of(target)).then(|| command_of(waker)),
        };
        (by, Some(target))
    }

    /// The waiter's own child that the waker is or descends from.
    fn child_above(&self, waiter: usize, waker: usize) -> Option<usize> {
        let depth = self.forest.launches[waiter].depth;
        let mut index = waker;
        for _ in 0..MOST_GENERATIONS {
            let parent = self.forest.parent(index)?;
            if parent == waiter {
                return Some(index);
            }
            if self.forest.launches[parent].depth <= depth {
                return None;
            }
            index = parent;
        }
        None
    }

    /// A child that was dead while its parent slept: what a parent that polls waits for.
    fn unreaped_child(&mut self, waiter: usize, wait: &Interval) -> Option<usize> {
        let forest = self.forest;
        if forest.children(waiter).is_empty() {
            return None;
        }
        let ends = self.ends.entry(waiter).or_insert_with(|| child_ends(forest, waiter));
        let begun = ends.partition_point(|end| end.zombie < wait.start);
        let during = ends.get(begun).filter(|end| end.zombie < wait.woken);
        let before = ends[..begun].last().filter(|end| end.reaped > wait.start);
        during.or(before).map(|end| end.child)
    }

    fn finish(self) -> Vec<AttributedWaits> {
        let recording = self.recording;
        let mut all: Vec<AttributedWaits> = self
            .sums
            .into_iter()
            .map(|((command, syscall, kind), sums)| AttributedWaits {
                command: command.label(),
                syscall,
                object: kind.map(|kind| AttributedObject {
                    kind,
                    only: sums.only.and_then(|object| only(recording, object)),
                }),
                on: waited_for(sums.on),
                count: sums.count,
                parts: sums.parts,
            })
            .collect();
        all.sort_by(|a, b| order(a).cmp(&order(b)));
        all
    }
}

fn order(waits: &AttributedWaits) -> impl Ord + '_ {
    let kind = waits.object.as_ref().map(|object| object.kind);
    (Reverse(waits.parts.total()), &waits.command, waits.syscall, kind)
}

/// A permission, and what has neither number nor path, is not one of several.
fn only(recording: &Recording, object: ObjectRef) -> Option<OnlyObject> {
    let object = WaitedObject::of(recording, object).filter(|object| object.inode != 0)?;
    Some(OnlyObject {
        device: object.device,
        inode: object.inode,
        path: object.path.map(<[u8]>::to_vec),
    })
}

fn waited_for(on: HashMap<By<'_>, HashSet<u32>>) -> Vec<WaitedFor> {
    let mut all: Vec<WaitedFor> = on
        .into_iter()
        .map(|(by, launches)| WaitedFor {
            who: match by {
                By::Launch { command, through } => Who::Launches {
                    command: command.label(),
                    through: through.map(|command| command.label()),
                },
                By::Process(name) => Who::Process(name.map(<[u8]>::to_vec)),
                By::Scanner(name) => Who::Scanner(name.map(<[u8]>::to_vec)),
            },
            count: launches.len().max(1) as u64,
        })
        .collect();
    all.sort_by(|a, b| (Reverse(a.count), &a.who).cmp(&(Reverse(b.count), &b.who)));
    all
}

fn child_ends(forest: &Forest<'_>, parent: usize) -> Vec<ChildEnd> {
    let end_of = |child: &usize| {
        let at = &forest.launches[*child].instants;
        Some(ChildEnd {
            zombie: at.zombie.get()?,
            reaped: at.reaped.get()?,
            child: *child,
        })
    };
    let mut ends: Vec<ChildEnd> = forest.children(parent).iter().filter_map(end_of).collect();
    ends.sort_by_key(|end| end.zombie);
    ends
}
