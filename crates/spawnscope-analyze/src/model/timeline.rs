//! The state of each thread at every instant: on a CPU, runnable, or blocked. Slices are stored as
//! recorded, by thread and time; a `Moment` is a view of one slice at an instant. `external_wait`
//! finds the reason of a blocked state.

use std::collections::BTreeMap;
use std::iter;
use std::sync::OnceLock;

use crate::model::external_wait::waker_is_cause;
use crate::model::launch::MaybeKnown;
use crate::model::poll_loop::{PollLoops, Rounds};
use crate::model::slices::{Slices, ThreadSlices};
use crate::model::tree::Forest;
use crate::model::unknown_waits::UnknownWaits;
use foldhash::HashMap;
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::ids::Ids;
use spawnscope_data::rows::{SliceRow, WakerRow};

/// Index of a thread among all threads of a recording.
pub type ThreadIndex = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    pub launch: u32,
    pub creator: MaybeKnown<ThreadIndex>,
    pub created: MaybeKnown,
}

/// What a wait that timed out is a part of: waits that a thread repeated until another one ended
/// the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatedWait {
    /// The slice of the last wait.
    pub(crate) last: u32,
    /// When the first wait began.
    pub(crate) begun: Nanos,
}

/// The end of a thread by the exit of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    /// When the exit began.
    pub(crate) at: Nanos,
    pub(crate) by: ThreadIndex,
    pub(crate) killed: ThreadIndex,
}

/// The threads of a recording, with their slices.
#[derive(Clone, Debug)]
pub struct Timelines {
    /// All threads. The first thread of each launch has the index of the launch.
    pub threads: Vec<Thread>,
    /// The threads of each process that has several, the first thread first.
    pub(crate) multithreaded: BTreeMap<u32, Vec<ThreadIndex>>,
    tasks: Tasks,
    slices: Slices,
    /// For each thread, the start and end of its slices in `slices`.
    slice_ranges: Vec<[u32; 2]>,
    /// For each launch, whether it was alive when the recording ended.
    is_alive: Vec<bool>,
    /// For each thread with an open wait, the thread that it waits for.
    pub(crate) awaited: HashMap<ThreadIndex, ThreadIndex>,
    /// The waits whose cause is uncertain, if the causes were reconstructed.
    pub(crate) unknown: Option<UnknownWaits>,
    /// Uncertainty of the total length of waits for polling threads and event loops (`polling`,
    /// `event_loops`).
    pub(crate) polling_uncertainty: Nanos,
    pub(crate) polls: PollLoops,
    /// The waits that ended in a round of a polling thread.
    pub(crate) rounds: Rounds,
    /// The waits that timed out and were repeated, by slice.
    pub(crate) repeated_waits: HashMap<u32, RepeatedWait>,
    pub(crate) kills: Vec<Kill>,
    /// For each launch, whether its parent waited in `read` while it ran. Computed at the first use
    /// (`patterns/pipeline`).
    pub(crate) reads: OnceLock<Vec<bool>>,
    /// The work of each launch. Computed at the first use (`predict/whatif/changes/work`).
    pub(crate) work_times: OnceLock<Vec<MaybeKnown>>,
}

/// Maps task ids of the recording to thread indices.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    /// The ids of the launches, which their first threads have, too.
    first_threads: Ids,
    /// All other threads, ascending.
    others: Vec<(TaskId, ThreadIndex)>,
}

impl Tasks {
    pub(crate) fn new(forest: &Forest<'_>, mut others: Vec<(TaskId, ThreadIndex)>) -> Tasks {
        others.sort_unstable();
        let first_threads = Ids::new(forest.launches.iter().map(|launch| launch.id.0.cast_signed()));
        Tasks { first_threads, others }
    }

    pub(crate) fn thread(&self, task: TaskId) -> Option<ThreadIndex> {
        if let Some(index) = self.first_threads.index_of(task.0.cast_signed()) {
            return Some(index as ThreadIndex);
        }
        let index = self.others.partition_point(|(other, _)| *other < task);
        let found = self.others.get(index).filter(|(other, _)| *other == task);
        found.map(|(_, thread)| *thread)
    }
}

/// The state of a thread just before an instant, and its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub since: Nanos,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running,
    /// It waits for a CPU. If another wait came before, this is the slice of that wait.
    Runnable(Option<SliceRow>),
    Blocked(SliceRow),
    /// It was just created, and waits for its first CPU.
    Created,
    /// Unknown: an event was lost, or the thread has ended.
    Unknown,
}

impl Timelines {
    pub(crate) fn new(threads: Vec<Thread>, tasks: Tasks, mut slices: Slices, is_alive: Vec<bool>) -> Timelines {
        slices.sort();
        let mut slice_ranges = vec![[0; 2]; threads.len()];
        for (task, range) in slices.runs() {
            if let Some(thread) = tasks.thread(task) {
                slice_ranges[thread as usize] = range;
            }
        }
        Timelines {
            multithreaded: multithreaded(&threads),
            threads,
            tasks,
            slices,
            slice_ranges,
            is_alive,
            awaited: HashMap::default(),
            unknown: None,
            polling_uncertainty: Nanos(0),
            polls: PollLoops::default(),
            rounds: Rounds::default(),
            repeated_waits: HashMap::default(),
            kills: Vec::new(),
            reads: OnceLock::new(),
            work_times: OnceLock::new(),
        }
    }

    /// Replaces all slices. The threads that are awaited in open waits become unknown.
    pub(crate) fn with_slices(self, slices: Slices) -> Timelines {
        let polls = self.polls;
        Timelines { polls, ..Timelines::new(self.threads, self.tasks, slices, self.is_alive) }
    }

    /// Whether the causes of waits were not recorded, but reconstructed.
    pub fn is_reconstructed(&self) -> bool {
        self.unknown.is_some()
    }

    pub(crate) fn launch_count(&self) -> u32 {
        self.is_alive.len() as u32
    }

    pub(crate) fn threads_of(&self, launch: u32) -> Vec<ThreadIndex> {
        self.multithreaded.get(&launch).cloned().unwrap_or_else(|| vec![launch])
    }

    pub fn thread(&self, task: TaskId) -> Option<ThreadIndex> {
        self.tasks.thread(task)
    }

    /// Returns the followed thread that caused the end of a wait. For an open wait, returns the
    /// thread that is awaited.
    pub fn cause(&self, waiting: ThreadIndex, slice: &SliceRow) -> Option<ThreadIndex> {
        if slice.is_open_wait() {
            return self.awaited.get(&waiting).copied();
        }
        let waker = self.waker(slice).filter(|waker| *waker != waiting)?;
        waker_is_cause(slice).then_some(waker)
    }

    /// Returns the followed thread that woke another thread, or that was running when an interrupt
    /// woke it.
    pub fn waker(&self, slice: &SliceRow) -> Option<ThreadIndex> {
        match slice.waker {
            Some(WakerRow::Task(task)) => self.thread(task),
            _ => None,
        }
    }

    pub fn slices(&self, thread: ThreadIndex) -> ThreadSlices<'_> {
        ThreadSlices::new(&self.slices, self.slice_ranges[thread as usize])
    }

    /// Replaces one slice of a thread. The new slice must have the same thread and time.
    pub(crate) fn replace(&mut self, thread: ThreadIndex, index: usize, row: SliceRow) {
        self.slices.set(self.slice_ranges[thread as usize][0] + index as u32, row);
    }

    pub(crate) fn slice_count(&self) -> usize {
        self.slices.len()
    }

    /// Returns, for each launch of the forest, how long its threads waited for a CPU.
    pub fn run_queue_times(&self) -> Vec<Nanos> {
        let mut sums = vec![Nanos(0); self.is_alive.len()];
        for (thread, index) in self.threads.iter().zip(0..) {
            let spans = self.slices(index).iter().filter_map(|slice| run_queue_span(&slice));
            sums[thread.launch as usize].0 += spans.map(|span| span.0).sum::<u64>();
        }
        sums
    }

    /// Whether the process of a thread was alive when the recording ended.
    pub fn outlives(&self, thread: ThreadIndex) -> bool {
        self.is_alive[self.launch_of(thread) as usize]
    }

    pub(crate) fn launch_of(&self, thread: ThreadIndex) -> u32 {
        self.threads[thread as usize].launch
    }

    pub(crate) fn parent_of(&self, launch: u32) -> Option<u32> {
        self.threads[launch as usize].creator.get().map(|creator| self.launch_of(creator))
    }

    /// Returns the state of a thread just before `at`. `None` before its first slice.
    pub fn state_before(&self, thread: ThreadIndex, at: Nanos) -> Option<Moment> {
        let slices = self.slices(thread);
        let begun = slices.partition_point(|slice| beginning(slice) < at);
        let slice = slices.get(begun.checked_sub(1)?)?;
        if at <= slice.off {
            return Some(Moment { since: beginning(&slice), state: State::Running });
        }
        let left = slice.off;
        let returned = returned_at(&slice);
        if let Some(returned) = returned.filter(|returned| at > *returned) {
            // A slice in which the thread was on a CPU was lost. If its process outlived the
            // recording, the time after its last slice is unknown.
            let is_open = begun == slices.len() && self.outlives(thread);
            return Some(Moment { since: returned, state: if is_open { State::Unknown } else { State::Running } });
        }
        let woken = woken_at(&slice).map(|woken| returned.map_or(woken, |returned| woken.min(returned)));
        let (since, state) = match (slice.reason, woken) {
            (LeftCpu::Ended, _) => (left, State::Unknown),
            (LeftCpu::Created, _) => (left, State::Created),
            (LeftCpu::Preempted, _) => (left, State::Runnable(None)),
            (_, Some(woken)) if at > woken => (woken, State::Runnable(Some(slice))),
            _ => (left, State::Blocked(slice)),
        };
        Some(Moment { since, state })
    }
}

fn multithreaded(threads: &[Thread]) -> BTreeMap<u32, Vec<ThreadIndex>> {
    let mut processes: BTreeMap<u32, Vec<ThreadIndex>> = BTreeMap::new();
    for (index, thread) in (0..).zip(threads) {
        // The first thread has the index of its launch.
        if index != thread.launch {
            processes.entry(thread.launch).or_insert_with(|| vec![thread.launch]).push(index);
        }
    }
    processes
}

/// Returns the interval after a slice in which its thread was runnable but had no CPU.
pub(crate) fn runnable(slice: &SliceRow) -> Option<(Nanos, Nanos)> {
    let off_span = slice.off_span?;
    let blocked = match slice.reason {
        LeftCpu::Ended => return None,
        LeftCpu::Created | LeftCpu::Preempted => Nanos(0),
        _ => slice.wake_span.unwrap_or(off_span).min(off_span),
    };
    Some((Nanos(slice.off.0 + blocked.0), Nanos(slice.off.0 + off_span.0)))
}

pub(crate) fn run_queue_span(slice: &SliceRow) -> Option<Nanos> {
    runnable(slice).map(|(from, to)| to.since(from))
}

/// Returns when a slice's time on the CPU starts.
pub(crate) fn beginning(slice: &SliceRow) -> Nanos {
    Nanos(slice.off.0.saturating_sub(slice.on_span.unwrap_or_default().0))
}

pub fn woken_at(slice: &SliceRow) -> Option<Nanos> {
    Some(Nanos(slice.off.0 + slice.wake_span?.0))
}

/// Returns a slice as a wait that a certain thread ended at an instant.
pub(crate) fn ended_by(slice: &SliceRow, task: TaskId, until: Nanos) -> SliceRow {
    SliceRow {
        waker: Some(WakerRow::Task(task)),
        wake_span: Some(until.since(slice.off)),
        is_waker_certain: Some(true),
        ..*slice
    }
}

/// Returns until when a thread was on a CPU, if it was after `from` and up to `to`.
pub(crate) fn worked_until(slices: ThreadSlices<'_>, (from, to): (Nanos, Nanos)) -> Option<Nanos> {
    let begun = slices.partition_point(|slice| beginning(slice) < to);
    let last = slices.get(begun.checked_sub(1)?)?;
    let until = last.off.min(to);
    (until > from && last.on_span.is_some()).then_some(until)
}

/// Returns when a thread was on a CPU again after a slice.
pub fn returned_at(slice: &SliceRow) -> Option<Nanos> {
    Some(Nanos(slice.off.0 + slice.off_span?.0))
}

/// Returns the thread of a launch that was on a CPU last, with which the launch ended. For a launch
/// that is still alive, returns the first thread that is alive, since other threads may come and
/// go.
pub fn last_thread(timelines: &Timelines, launch: u32) -> ThreadIndex {
    last_threads(timelines, |other| other == launch).remove(&launch).unwrap_or(launch)
}

/// Returns the last thread of each launch that `is_wanted` accepts.
pub(crate) fn last_threads(timelines: &Timelines, is_wanted: impl Fn(u32) -> bool) -> HashMap<u32, ThreadIndex> {
    let mut last: HashMap<u32, ((bool, Option<Nanos>), ThreadIndex)> = HashMap::default();
    let threads = (0..).zip(&timelines.threads);
    for (index, thread) in threads.filter(|(_, thread)| is_wanted(thread.launch)) {
        let slice = timelines.slices(index).last();
        let end = match slice {
            Some(slice) if slice.is_open() => (true, None),
            slice => (false, slice.map(|slice| slice.off)),
        };
        let found = last.entry(thread.launch).or_insert((end, index));
        // On a tie, the first thread wins.
        if end > found.0 {
            *found = (end, index);
        }
    }
    last.into_iter().map(|(launch, (_, index))| (launch, index)).collect()
}

/// Returns the launch whose end is the end of the wall: the command, or with `record
/// --wait-for-all` the launch that ended last.
pub fn last_launch(forest: &Forest<'_>, root: u32, end: Nanos) -> u32 {
    let mut candidates = iter::once(root).chain(0..forest.launches.len() as u32);
    candidates.find(|launch| forest.launches[*launch as usize].instants.zombie.get() == Some(end)).unwrap_or(root)
}

/// Returns the launch whose wall is analyzed: the recorded command, or the owner of a window.
/// `None` for a recording of the whole machine.
pub fn root_of(forest: &Forest<'_>) -> Option<u32> {
    forest.root.map(|root| root as u32)
}
