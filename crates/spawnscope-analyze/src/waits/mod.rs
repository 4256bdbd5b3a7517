//! Waits of threads, grouped by launch. `attribution` finds the process that each wait was for.

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

use crate::model::tree::Forest;
use foldhash::HashMap;
use spawnscope_data::event::{LeftCpu, TaskId};
use spawnscope_data::rows::{SliceRow, ThreadRow};

/// The slices after which threads were blocked.
#[derive(Clone, Debug)]
pub struct Waits {
    launches: HashMap<TaskId, u32>,
    slices: Vec<(u32, SliceRow)>,
}

impl Waits {
    pub fn new(forest: &Forest<'_>, threads: &[ThreadRow]) -> Waits {
        // The first thread of a process has the id of its launch.
        let first_threads = forest.launches.iter().map(|launch| TaskId(launch.id.0));
        let mut launches: HashMap<TaskId, u32> = first_threads.zip(0..).collect();
        for thread in threads {
            if let Some(launch) = launches.get(&TaskId(thread.launch.0)).copied() {
                launches.insert(thread.task, launch);
            }
        }
        Waits { launches, slices: Vec::new() }
    }

    /// Adds a slice, if it is a wait of a recorded thread. Call `sort` after the last slice.
    pub fn push(&mut self, slice: SliceRow) {
        if let Some(launch) = self.launches.get(&slice.task).filter(|_| is_blocked(slice.reason)) {
            self.slices.push((*launch, slice));
        }
    }

    pub fn sort(&mut self) {
        self.slices.sort_unstable_by_key(|(launch, slice)| (*launch, slice.off, slice.task));
    }

    /// Returns the waits of the launch at `index` of the forest, by time.
    pub fn of_launch(&self, index: usize) -> impl ExactSizeIterator<Item = &SliceRow> + Clone {
        let [start, end] =
            [index, index + 1].map(|limit| self.slices.partition_point(|(at, _)| (*at as usize) < limit));
        self.slices[start..end].iter().map(|(_, slice)| slice)
    }

    pub fn launch_of(&self, task: TaskId) -> Option<usize> {
        self.launches.get(&task).map(|launch| *launch as usize)
    }
}

fn is_blocked(reason: LeftCpu) -> bool {
    matches!(reason, LeftCpu::Interruptible | LeftCpu::Uninterruptible | LeftCpu::Stopped)
}
