//! Groups the slices of a recording into timelines, and rewrites the waits for processes that
//! listened at the other end of internet sockets: a thread that waits for such a socket is woken in
//! an interrupt, so the waker is unknown. If the peer is a process on the same machine, the wait
//! was for that process.

use std::collections::BTreeSet;

use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::launch::{Launch, MaybeKnown};
use crate::model::poll_loop::PollLoops;
use crate::model::slices::Slices;
use crate::model::timeline::{Tasks, Thread, ThreadIndex, Timelines};
use crate::model::tree::Forest;
use crate::waits::child_waits::{self, Reaps};
use crate::waits::event_loops;
use crate::waits::kills;
use crate::waits::open_waits::OpenWaits;
use crate::waits::poll_loops;
use crate::waits::polling;
use crate::waits::{repeated_waits, terminals};
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::{ObjectKind, TaskId};
use spawnscope_data::rows::{Recording, SliceRow, TextId, ThreadRow, WakerRow};

#[derive(Clone, Debug)]
pub struct SliceCollection {
    threads: Vec<Thread>,
    tasks: Tasks,
    /// For each launch, whether it was alive when the recording ended.
    is_alive: Vec<bool>,
    /// For each launch, when its exit started.
    exits: Vec<MaybeKnown>,
    open_waits: OpenWaits,
    reaps: Reaps,
    peers: HashMap<usize, WakerRow>,
    kernel_workers: HashSet<TextId>,
}

impl SliceCollection {
    pub fn new(forest: &Forest<'_>, thread_rows: &[ThreadRow]) -> SliceCollection {
        let mut threads: Vec<Thread> = (0..)
            .zip(&forest.launches)
            .map(|(launch, each)| Thread { launch, creator: None.into(), created: each.instants.created })
            .collect();
        let mut others: Vec<(TaskId, ThreadIndex)> = Vec::new();
        for row in thread_rows {
            if let Some(launch) = forest.index_of(row.launch) {
                others.push((row.task, threads.len() as ThreadIndex));
                let created = Some(row.created).into();
                threads.push(Thread { launch: launch as u32, creator: None.into(), created });
            }
        }
        let tasks = Tasks::new(forest, others);
        let launches = forest.launches.iter();
        let launch_creators = launches.map(|launch| (TaskId(launch.id.0), launch.parent_task.get()));
        for (task, creator) in launch_creators.chain(thread_rows.iter().map(|row| (row.task, row.creator))) {
            if let Some(index) = tasks.thread(task) {
                threads[index as usize].creator = creator.and_then(|creator| tasks.thread(creator)).into();
            }
        }
        SliceCollection {
            threads,
            tasks,
            is_alive: forest.launches.iter().map(Launch::is_unfinished).collect(),
            exits: forest.launches.iter().map(|launch| launch.instants.exit).collect(),
            open_waits: OpenWaits::new(forest),
            reaps: Reaps::new(forest),
            peers: peers(forest.recording()),
            kernel_workers: forest.recording().texts.starting_with(terminals::WORKER_PREFIX).collect(),
        }
    }

    /// Groups the slices by thread and time, and finds what threads really waited for in open
    /// waits, in some waits for a CPU, and in waits that their own process ended. Slices of
    /// unrecorded threads are ignored.
    pub fn finish(self, slices: Slices) -> Timelines {
        let mut timelines = Timelines::new(self.threads, self.tasks, slices, self.is_alive);
        let is_unexplained =
            |slice| poll_loops::is_nap(&slice) || terminals::is_by_worker(&slice, &self.kernel_workers);
        // The threads with waits that a timer or a kernel worker ended. Few threads have any.
        let threads = 0..timelines.threads.len() as ThreadIndex;
        let unexplained: BTreeSet<ThreadIndex> =
            threads.filter(|thread| timelines.slices(*thread).iter().any(is_unexplained)).collect();
        rewrite_waits(&mut timelines, &self.peers);
        terminals::rewrite_waits(&mut timelines, &unexplained, &self.kernel_workers);
        child_waits::rewrite_waits(&mut timelines, &self.reaps);
        timelines.kills = kills::find(&mut timelines, &self.exits);
        timelines.repeated_waits = repeated_waits::find(&timelines, &unexplained);
        timelines.polls = PollLoops::new(poll_loops::find(&timelines, &unexplained, &self.reaps, &self.exits));
        let timer_uncertainty = event_loops::rewrite_waits(&mut timelines, &self.reaps);
        timelines.polling_uncertainty = polling::rewrite_waits(&mut timelines, &self.exits).max(timer_uncertainty);
        timelines.awaited = self.open_waits.awaited(&timelines);
        timelines
    }
}

/// Returns the process at the other end of each socket, by the index of the socket's row in
/// `objects`.
fn peers(recording: &Recording) -> HashMap<usize, WakerRow> {
    let by_inode =
        recording.peers.iter().map(|peer| ((peer.device, peer.inode), WakerRow::Other(peer.pid, Some(peer.name))));
    let by_inode: HashMap<(u32, u64), WakerRow> = by_inode.collect();
    let sockets = recording.objects.iter().enumerate().filter(|(_, object)| object.kind == ObjectKind::Socket);
    let found = sockets.filter_map(|(index, object)| Some((index, *by_inode.get(&(object.device, object.inode))?)));
    if by_inode.is_empty() { HashMap::default() } else { found.collect() }
}

/// Makes the peer the waker of each wait for a socket whose peer is known.
fn rewrite_waits(timelines: &mut Timelines, peers: &HashMap<usize, WakerRow>) {
    if peers.is_empty() {
        return;
    }
    let with_peer = |slice: SliceRow| {
        let process = *peers.get(&slice.object?.index())?;
        let is_wait = !slice.is_open_wait() && external_wait_of(&slice) == ExternalWait::Network;
        is_wait.then_some(SliceRow { waker: Some(process), is_waker_certain: Some(true), ..slice })
    };
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let slices = timelines.slices(thread).iter().enumerate();
        let found: Vec<_> = slices.filter_map(|(index, slice)| Some((index, with_peer(slice)?))).collect();
        for (index, slice) in found {
            timelines.replace(thread, index, slice);
        }
    }
}
