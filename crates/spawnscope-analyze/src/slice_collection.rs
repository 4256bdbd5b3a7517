//! Collects slices as they are read from a recording. When all have been read, groups them into
//! timelines.

use crate::child_waits::{self, Reaps};
use crate::event_loops;
use crate::launch::{Launch, MaybeKnown};
use crate::open_waits::OpenWaits;
use crate::peers::{self, Peers};
use crate::polling;
use crate::slices::Slices;
use crate::timeline::{Tasks, Thread, ThreadIndex, Timelines};
use crate::tree::Forest;
use spawnscope_data::event::TaskId;
use spawnscope_data::rows::{SliceRow, ThreadRow};

/// Collects slices as they are read.
#[derive(Clone, Debug)]
pub struct SliceCollection {
    threads: Vec<Thread>,
    tasks: Tasks,
    slices: Slices,
    /// For each launch, whether it was alive when the recording ended.
    is_alive: Vec<bool>,
    /// For each launch, when its exit started.
    exits: Vec<MaybeKnown>,
    open_waits: OpenWaits,
    reaps: Reaps,
    peers: Peers,
}

impl SliceCollection {
    /// Returns an empty collection for the launches of `forest`.
    #[must_use]
    pub fn new(forest: &Forest<'_>, thread_rows: &[ThreadRow]) -> SliceCollection {
        let mut threads: Vec<Thread> = (0..)
            .zip(&forest.launches)
            .map(|(launch, each)| Thread { launch, creator: MaybeKnown::default(), created: each.instants.created })
            .collect();
        let mut others: Vec<(TaskId, ThreadIndex)> = Vec::new();
        for row in thread_rows {
            if let Some(launch) = forest.index_of(row.launch) {
                others.push((row.task, threads.len() as ThreadIndex));
                threads.push(Thread {
                    launch: launch as u32,
                    creator: MaybeKnown::default(),
                    created: Some(row.created).into(),
                });
            }
        }
        let tasks = Tasks::new(forest, others);
        let launches = forest.launches.iter();
        let launch_creators = launches.map(|launch| (TaskId(launch.id.0), launch.creator.get()));
        for (task, creator) in launch_creators.chain(thread_rows.iter().map(|row| (row.task, row.creator))) {
            if let Some(index) = tasks.thread(task) {
                threads[index as usize].creator = creator.and_then(|creator| tasks.thread(creator)).into();
            }
        }
        SliceCollection {
            threads,
            tasks,
            slices: Slices::default(),
            is_alive: forest.launches.iter().map(Launch::is_unfinished).collect(),
            exits: forest.launches.iter().map(|launch| launch.instants.exit).collect(),
            open_waits: OpenWaits::new(forest),
            reaps: Reaps::new(forest),
            peers: Peers::new(forest.recording()),
        }
    }

    /// Adds a slice. Slices of unrecorded threads are ignored.
    pub fn push(&mut self, slice: SliceRow) {
        self.slices.push(slice);
    }

    /// Replaces the slices.
    #[must_use]
    pub fn with_slices(self, slices: Slices) -> SliceCollection {
        SliceCollection { slices, ..self }
    }

    /// Groups the slices by thread and time, and finds what threads really waited for in open
    /// waits, in some waits for a CPU, and in waits that their own process ended.
    #[must_use]
    pub fn finish(self) -> Timelines {
        let mut timelines = Timelines::new(self.threads, self.tasks, self.slices, self.is_alive);
        peers::rewrite_waits(&mut timelines, &self.peers);
        child_waits::rewrite_waits(&mut timelines, &self.reaps);
        let timer_uncertainty = event_loops::rewrite_waits(&mut timelines, &self.reaps);
        timelines.polling_uncertainty = polling::rewrite_waits(&mut timelines, &self.exits).max(timer_uncertainty);
        let awaited = self.open_waits.awaited(&timelines);
        timelines.with_awaited(awaited)
    }
}
