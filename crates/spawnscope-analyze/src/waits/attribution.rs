//! Attributes waits to the launch, scanner or process that they were for. For example, a parent's
//! wait in `read` is attributed to the child whose descendant wrote, in `wait4` to the child that
//! ended, and a wait for permission to the scanner. Sums waits by program, system call and kind of
//! object. `split` divides a single wait.

use std::cmp::Reverse;

use super::is_blocked;
pub use super::split::Parts;
use super::split::{Interval, Splitter};
use crate::model::external_wait::{ExternalWait, external_wait_of, is_sleep};
use crate::model::launch::Command;
use crate::model::timeline::{ThreadIndex, Timelines};
use crate::model::tree::Forest;
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::{LeftCpu, Nanos, ObjectKind};
use spawnscope_data::rows::{ObjectRef, Recording, SliceRow, TextId};

/// Maximum number of generations between a waiting process and its waker. If there are more, the
/// wait is attributed to the waker itself. Only artificial chains of launches are longer.
const MAX_GENERATIONS: usize = 1000;

/// Waits of one program, in one system call, on one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributedWaits {
    pub command: Vec<u8>,
    pub syscall: Option<u16>,
    pub object: Option<AttributedObject>,
    /// The processes that the waits were for, the most frequent first.
    pub targets: Vec<WaitTargets>,
    pub count: u64,
    /// Sum of the waits, divided into parts.
    pub parts: Parts,
}

/// The object that several waits were for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributedObject {
    pub kind: ObjectKind,
    /// The object, if all waits were for the same object.
    pub identity: Option<ObjectIdentity>,
    /// The path, or the address of a socket's peer, if it was the same for all waits. Several
    /// sockets may have the same peer.
    pub path: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectIdentity {
    /// The device number of the file system that contains the object: major << 20 | minor.
    pub device: u32,
    pub inode: u64,
}

/// A program or process that waits were for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitTargets {
    pub target: WaitTarget,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitTarget {
    /// Launches of a program. If the waker descends from the waiting process, the launch is the
    /// child of the waiting process that is the waker or its ancestor; otherwise the launch is the
    /// waker itself.
    Launches {
        command: Vec<u8>,
        /// The program of the waker, if the waker is a descendant of that launch and runs another
        /// program.
        through: Option<Vec<u8>>,
    },
    Process(Option<Vec<u8>>),
    Scanner(Option<Vec<u8>>),
}

/// Sums the waits that a launch, a scanner or an unrecorded process ended, the longest sum first.
/// Waits ended by a timer, a disk or the network are left out, and so are waits between threads of
/// one process.
pub fn attributed_waits(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> Vec<AttributedWaits> {
    let mut collection = Collection::new(recording, forest, timelines);
    for thread in 0..timelines.threads.len() as ThreadIndex {
        for slice in timelines.slices(thread).iter() {
            collection.add(thread, &slice);
        }
    }
    collection.finish()
}

/// Returns, for each launch of the forest, how long its parent waited for it or for a descendant of
/// it.
pub fn waits_of_parents(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> Vec<Nanos> {
    let mut collection = Collection::new(recording, forest, timelines);
    let mut sums = vec![Nanos(0); forest.launches.len()];
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let waiter = timelines.launch_of(thread) as usize;
        if forest.children(waiter).is_empty() {
            continue;
        }
        for slice in timelines.slices(thread).iter() {
            let target = collection.attribute(thread, &slice).and_then(|(wait, _, target)| Some((wait, target?)));
            if let Some((wait, child)) = target.filter(|(_, target)| forest.parent(*target) == Some(waiter)) {
                sums[child].0 += wait.span().0;
            }
        }
    }
    sums
}

type Key<'a> = (Command<'a>, Option<u16>, Option<ObjectKind>);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TargetKey<'a> {
    Launch { command: Command<'a>, through: Option<Command<'a>> },
    Process(Option<&'a [u8]>),
    Scanner(Option<&'a [u8]>),
}

#[derive(Default)]
struct Sums<'a> {
    count: u64,
    parts: Parts,
    /// The object, if all waits so far are for the same object.
    common_object: Option<ObjectRef>,
    /// The path of the objects, if it is the same for all waits so far.
    common_path: Option<TextId>,
    /// For each target, the indices of the launches. Empty for other processes.
    targets: HashMap<TargetKey<'a>, HashSet<u32>>,
}

struct Collection<'f, 'a> {
    recording: &'a Recording,
    forest: &'f Forest<'a>,
    timelines: &'f Timelines,
    splitter: Splitter<'f, 'a>,
    /// For launches that sleep, the ends of their children.
    child_ends: HashMap<usize, Vec<ChildEnd>>,
    sums: HashMap<Key<'a>, Sums<'a>>,
}

/// The interval in which a child was a zombie.
struct ChildEnd {
    zombie: Nanos,
    reaped: Nanos,
    child: usize,
}

/// A wait, what it was for, and the launch that it is attributed to.
type Attributed<'a> = (Interval, TargetKey<'a>, Option<usize>);

impl<'f, 'a> Collection<'f, 'a> {
    fn new(recording: &'a Recording, forest: &'f Forest<'a>, timelines: &'f Timelines) -> Collection<'f, 'a> {
        Collection {
            recording,
            forest,
            timelines,
            splitter: Splitter::new(forest, timelines),
            child_ends: HashMap::default(),
            sums: HashMap::default(),
        }
    }

    /// Attributes the wait after a slice. `None` if there is no wait, or if it was for neither a
    /// launch nor another process.
    fn attribute(&mut self, thread: ThreadIndex, slice: &SliceRow) -> Option<Attributed<'a>> {
        let wait = Interval::from_slice(slice, self.forest.end)
            .filter(|_| is_blocked(slice.reason) && slice.reason != LeftCpu::Stopped)?;
        let waiter = self.timelines.launch_of(thread) as usize;
        let (target_key, target) = self.find_target(thread, waiter, slice, &wait)?;
        let is_unexplained = slice.waker.is_none();
        let is_other_timer =
            is_unexplained && is_sleep(slice) && target.is_some_and(|target| self.is_by_other_thread(target, thread));
        (!is_other_timer).then_some((wait, target_key, target))
    }

    /// Whether another thread than this one requested a launch. Threads of a runtime, such as the
    /// supervisor of a thread pool, sleep on timers while another thread waits for the launch.
    fn is_by_other_thread(&self, launch: usize, thread: ThreadIndex) -> bool {
        let creator = self.forest.launches[launch].parent_task.get();
        creator.is_some_and(|task| self.timelines.thread(task).is_some_and(|creator| creator != thread))
    }

    fn add(&mut self, thread: ThreadIndex, slice: &SliceRow) {
        let Some((wait, target_key, target)) = self.attribute(thread, slice) else { return };
        let waiter = self.timelines.launch_of(thread) as usize;
        let parts = match target {
            Some(target) => self.splitter.split(target, &wait),
            None => Splitter::without_launch(&wait),
        };
        let command = self.forest.command_at(waiter, wait.start);
        let key = (command, slice.syscall, slice.object.map(ObjectRef::kind));
        let sums = self.sums.entry(key).or_default();
        sums.common_object = slice.object.filter(|object| sums.count == 0 || sums.common_object == Some(*object));
        let path = slice.object.and_then(|object| self.recording.objects.get(object.index())?.path);
        sums.common_path = path.filter(|path| sums.count == 0 || sums.common_path == Some(*path));
        sums.count += 1;
        sums.parts.add(&parts);
        sums.targets.entry(target_key).or_default().extend(target.map(|target| target as u32));
    }

    /// Returns what a wait was for, and the launch that it is attributed to. `None` if it was for
    /// neither a launch nor another process.
    fn find_target(
        &mut self,
        thread: ThreadIndex,
        waiter: usize,
        slice: &SliceRow,
        wait: &Interval,
    ) -> Option<(TargetKey<'a>, Option<usize>)> {
        let cause = self.timelines.cause(thread, slice);
        let cause = cause.map(|thread| self.timelines.launch_of(thread) as usize);
        let texts = &self.recording.texts;
        match (cause, external_wait_of(slice)) {
            // Even if the scanner is recorded, its phases do not show how long it worked on one
            // permission.
            (Some(scanner), ExternalWait::Scanner(_)) => {
                Some((TargetKey::Scanner(Some(self.forest.launches[scanner].command.name)), None))
            }
            (None, ExternalWait::Scanner(scanner)) => {
                Some((TargetKey::Scanner(scanner.map(|name| texts.get(name))), None))
            }
            (Some(waker), _) if waker == waiter => None,
            (Some(waker), _) => Some(self.launch_target(waiter, waker)),
            (None, ExternalWait::Process(process)) => {
                Some((TargetKey::Process(process.map(|name| texts.get(name))), None))
            }
            (None, ExternalWait::Timer) => {
                let child = self.unreaped_child(waiter, wait)?;
                Some(self.launch_target(waiter, child))
            }
            (None, _) => None,
        }
    }

    fn launch_target(&self, waiter: usize, waker: usize) -> (TargetKey<'a>, Option<usize>) {
        let target = self.child_above(waiter, waker).unwrap_or(waker);
        let [command, through] = [target, waker].map(|launch| *self.forest.launches[launch].command);
        let through = (through != command).then_some(through);
        (TargetKey::Launch { command, through }, Some(target))
    }

    /// Returns the child of the waiting launch that the waker is or descends from.
    fn child_above(&self, waiter: usize, waker: usize) -> Option<usize> {
        let depth = self.forest.launches[waiter].depth;
        let mut index = waker;
        for _ in 0..MAX_GENERATIONS {
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

    /// Returns a child that was a zombie while its parent slept, because the parent polls for the
    /// end of the child.
    fn unreaped_child(&mut self, waiter: usize, wait: &Interval) -> Option<usize> {
        let forest = self.forest;
        if forest.children(waiter).is_empty() {
            return None;
        }
        let ends = self.child_ends.entry(waiter).or_insert_with(|| child_ends(forest, waiter));
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
                    identity: sums.common_object.and_then(|object| identify(recording, object)),
                    path: sums.common_path.map(|path| recording.texts.get(path).to_vec()),
                }),
                targets: wait_targets(sums.targets),
                count: sums.count,
                parts: sums.parts,
            })
            .collect();
        all.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
        all
    }
}

fn sort_key(waits: &AttributedWaits) -> impl Ord + '_ {
    let kind = waits.object.as_ref().map(|object| object.kind);
    (Reverse(waits.parts.total()), &waits.command, waits.syscall, kind)
}

/// Returns the device and inode of an object. `None` if it has no inode number, such as a
/// permission.
fn identify(recording: &Recording, object: ObjectRef) -> Option<ObjectIdentity> {
    let object = recording.objects.get(object.index()).filter(|object| object.inode != 0)?;
    Some(ObjectIdentity { device: object.device, inode: object.inode })
}

fn wait_targets(targets: HashMap<TargetKey<'_>, HashSet<u32>>) -> Vec<WaitTargets> {
    let mut all: Vec<WaitTargets> = targets
        .into_iter()
        .map(|(target_key, launches)| WaitTargets {
            target: match target_key {
                TargetKey::Launch { command, through } => {
                    WaitTarget::Launches { command: command.label(), through: through.map(|command| command.label()) }
                }
                TargetKey::Process(name) => WaitTarget::Process(name.map(<[u8]>::to_vec)),
                TargetKey::Scanner(name) => WaitTarget::Scanner(name.map(<[u8]>::to_vec)),
            },
            count: launches.len().max(1) as u64,
        })
        .collect();
    all.sort_by(|a, b| (Reverse(a.count), &a.target).cmp(&(Reverse(b.count), &b.target)));
    all
}

fn child_ends(forest: &Forest<'_>, parent: usize) -> Vec<ChildEnd> {
    let ends = forest.children(parent).iter().filter_map(|child| {
        let at = &forest.launches[*child].instants;
        Some(ChildEnd { zombie: at.zombie.get()?, reaped: at.reaped.get()?, child: *child })
    });
    let mut ends: Vec<ChildEnd> = ends.collect();
    ends.sort_by_key(|end| end.zombie);
    ends
}
