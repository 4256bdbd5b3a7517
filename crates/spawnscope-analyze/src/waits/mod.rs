//! Waits of threads, grouped by launch. `attribution` finds the process that each wait was for.
//! Because there are several waits per launch, they are stored as rows, and converted to `Wait`
//! only when they are read.

pub mod attribution;
pub(crate) mod child_waits;
pub(crate) mod event_loops;
pub mod failed_execs;
mod kills;
pub(crate) mod open_waits;
mod poll_loops;
pub(crate) mod polling;
pub mod reconstruct;
mod repeated_waits;
pub mod slice_collection;
mod terminals;

mod split;

use std::collections::HashMap;

use crate::model::grouped::GroupedItems;
use crate::model::timeline::{returned_at, woken_at};
use crate::model::tree::Forest;
use spawnscope_data::event::{LeftCpu, Nanos, ObjectKind, Pid, TaskId};
use spawnscope_data::rows::{ObjectRef, ObjectRow, Recording, SliceRow, ThreadRow, WakerRow};

/// An interval in which a thread was off the CPU and blocked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    pub task: TaskId,
    /// When the thread left the CPU.
    pub start: Nanos,
    /// When the thread was on a CPU again. `None` if it never was, or if the time is unknown.
    pub end: Option<Nanos>,
    /// When the thread became runnable.
    pub woken: Option<Nanos>,
    pub reason: LeftCpu,
    /// The number of the system call that the thread was in.
    pub syscall: Option<u16>,
    /// The first argument of the system call.
    pub argument: Option<u64>,
    pub object: Option<WaitedObject<'a>>,
    pub waker: Option<Waker<'a>>,
    /// False if the waker may only be a thread that was interrupted. True if the waker is certain,
    /// or if the recording does not say whether it is.
    pub is_waker_certain: bool,
}

/// The object that a thread waited for inside a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitedObject<'a> {
    pub kind: ObjectKind,
    /// The device number of the file system that contains the object: major << 20 | minor.
    pub device: u32,
    pub inode: u64,
    pub path: Option<&'a [u8]>,
}

impl<'a> WaitedObject<'a> {
    pub(super) fn resolve(recording: &'a Recording, object: ObjectRef) -> Option<WaitedObject<'a>> {
        let row: &ObjectRow = recording.objects.get(object.index())?;
        Some(WaitedObject {
            kind: row.kind,
            device: row.device,
            inode: row.inode,
            path: row.path.map(|path| recording.texts.get(path)),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker<'a> {
    Task {
        task: TaskId,
        /// Index of its launch in the forest.
        launch: Option<usize>,
    },
    /// A thread that is not followed.
    Other {
        pid: Pid,
        name: Option<&'a [u8]>,
    },
    Interrupt,
}

#[derive(Clone, Debug)]
pub struct Waits<'a> {
    tasks: Tasks<'a>,
    slices: GroupedItems<SliceRow>,
}

/// Collects slices as they are read, and keeps those that are waits.
#[derive(Clone, Debug)]
pub struct WaitCollection<'a> {
    tasks: Tasks<'a>,
    launches: usize,
    slices: Vec<(u32, SliceRow)>,
}

impl<'a> WaitCollection<'a> {
    pub fn new(recording: &'a Recording, forest: &Forest<'_>, threads: &[ThreadRow]) -> WaitCollection<'a> {
        WaitCollection {
            tasks: Tasks::new(recording, forest, threads),
            launches: forest.launches.len(),
            slices: Vec::new(),
        }
    }

    pub fn push(&mut self, slice: SliceRow) {
        if let Some(launch) = self.tasks.launch_of(slice.task).filter(|_| is_blocked(slice.reason)) {
            self.slices.push((launch, slice));
        }
    }

    pub fn finish(mut self) -> Waits<'a> {
        self.slices.sort_unstable_by_key(|(launch, slice)| (*launch, slice.off, slice.task));
        Waits { tasks: self.tasks, slices: GroupedItems::new(self.launches, self.slices) }
    }
}

impl<'a> Waits<'a> {
    /// Returns the waits of the launch at `index` of the forest, by time.
    pub fn of_launch(&self, index: usize) -> impl ExactSizeIterator<Item = Wait<'a>> + Clone {
        self.slices.items_of(index).iter().map(|slice| self.tasks.wait(slice))
    }
}

#[derive(Clone, Debug)]
struct Tasks<'a> {
    recording: &'a Recording,
    launches: HashMap<TaskId, u32>,
}

impl<'a> Tasks<'a> {
    fn new(recording: &'a Recording, forest: &Forest<'_>, threads: &[ThreadRow]) -> Tasks<'a> {
        // The first thread of a process has the id of its launch.
        let first_threads = forest.launches.iter().map(|launch| TaskId(launch.id.0));
        let mut launches: HashMap<TaskId, u32> = first_threads.zip(0..).collect();
        for thread in threads {
            if let Some(launch) = launches.get(&TaskId(thread.launch.0)).copied() {
                launches.insert(thread.task, launch);
            }
        }
        Tasks { recording, launches }
    }

    fn launch_of(&self, task: TaskId) -> Option<u32> {
        self.launches.get(&task).copied()
    }

    fn wait(&self, slice: &SliceRow) -> Wait<'a> {
        Wait {
            task: slice.task,
            start: slice.off,
            end: returned_at(slice),
            woken: woken_at(slice),
            reason: slice.reason,
            syscall: slice.syscall,
            argument: slice.argument,
            object: slice.object.and_then(|object| WaitedObject::resolve(self.recording, object)),
            waker: slice.waker.map(|waker| self.waker(waker)),
            is_waker_certain: slice.is_waker_certain != Some(false),
        }
    }

    fn waker(&self, waker: WakerRow) -> Waker<'a> {
        match waker {
            WakerRow::Task(task) => Waker::Task { task, launch: self.launch_of(task).map(|launch| launch as usize) },
            WakerRow::Other(pid, name) => Waker::Other { pid, name: name.map(|id| self.recording.texts.get(id)) },
            WakerRow::Interrupt => Waker::Interrupt,
        }
    }
}

fn is_blocked(reason: LeftCpu) -> bool {
    matches!(reason, LeftCpu::Interruptible | LeftCpu::Uninterruptible | LeftCpu::Stopped)
}
