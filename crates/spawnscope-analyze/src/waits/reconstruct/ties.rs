//! Connects recorded waits without a waker to the event of a child that ended them. A parent that
//! was off its CPU until just after the end of a child waited for that child. Any other wait is
//! assumed to be for a thread that was on a CPU when the wait ended, or its cause is unknown.

use super::events::{ChildEvent, ChildEventKind, ChildEvents};
use crate::model::external_wait::waker_is_cause;
use crate::model::timeline::{ThreadIndex, Timelines, beginning, last_threads, returned_at};
use crate::model::tree::Forest;
use crate::model::unknown_waits::{SupposedReap, UnknownWait};
use crate::waits::child_waits::is_created;
use foldhash::HashMap;
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{SliceRow, WakerRow};

/// Maximum time from the event that ended a wait until the thread is on a CPU again, if it need not
/// wait for a CPU.
const MAX_DELAY: Nanos = Nanos(1_000_000);
/// An event also counts as the cause of a wait if the wait is at least this many times as long as
/// the time from the event to the end of the wait, which is then hardly a coincidence.
const MIN_WAIT_RATIO: u64 = 20;
/// Maximum time by which a recorded exit may be too late. Kernels before 6.16 report an exit after
/// the process has closed its files, and closing them may already end a wait of the parent.
const LATE_EXIT: Nanos = Nanos(200_000);

mod calls {
    use spawnscope_data::event::syscalls::{number, numbers};

    pub(super) const READ: u16 = number("read");
    /// System calls that return when a child has ended.
    pub(super) const FOR_CHILDREN: [u16; 2] = numbers(["wait4", "waitid"]);
    /// System calls that the end of a child may end, through SIGCHLD or by closing a pipe.
    pub(super) const ENDED_BY_CHILDREN: [u16; 11] = numbers([
        "read", "poll", "select", "pause", "rt_sigtimedwait", "rt_sigsuspend", "epoll_wait", "pselect6", "ppoll",
        "epoll_pwait", "epoll_pwait2",
    ]);
}

/// A wait and what ended it.
struct Tie {
    thread: ThreadIndex,
    index: usize,
    /// The thread that ended the wait, and when.
    waker: Option<(ThreadIndex, Nanos)>,
    is_certain: bool,
    /// The earliest time at which the wait may have ended, if the thread may have waited long for a
    /// CPU after it.
    earliest: Option<Nanos>,
}

/// Adds wakers to the blocked slices of all threads. Returns the waits whose cause is uncertain,
/// and the children that ended during a wait for another child.
pub(super) fn tie(
    forest: &Forest<'_>,
    events: &ChildEvents,
    timelines: &mut Timelines,
) -> (Vec<UnknownWait>, Vec<SupposedReap>) {
    let last = last_threads(timelines, |launch| forest.parent(launch as usize).is_some());
    let running = RunningThreads::new(timelines);
    let finder = TieFinder { forest, events, timelines, last: &last, running: &running };
    let threads = 0..finder.timelines.threads.len() as ThreadIndex;
    let ties: Vec<Tie> = threads.flat_map(|thread| finder.ties_of(thread)).collect();
    let (mut unknown, mut reaps) = (Vec::new(), Vec::new());
    for tie in ties {
        let Some(slice) = timelines.slices(tie.thread).get(tie.index) else { continue };
        let launch = timelines.launch_of(tie.thread);
        let supposed = tie.waker.map(|(waker, _)| timelines.launch_of(waker));
        reaps.extend(supposed_reaps(forest, events, &slice, tie.thread, launch, supposed));
        if !tie.is_certain {
            let end = returned_at(&slice).unwrap_or(forest.end).max(slice.off);
            unknown.push(UnknownWait {
                launch,
                span: end.since(slice.off),
                end: [tie.earliest.unwrap_or(end).min(end), end],
                supposed,
            });
        }
        let row = match tie.waker.and_then(|(waker, at)| Some((task_of(forest, timelines, waker)?, at))) {
            Some((task, at)) => ended_by(&slice, task, at),
            // All of the time off the CPU counts as the wait, because it is unknown how long the
            // thread waited for a CPU after it.
            None => SliceRow { wake_span: slice.off_span, ..slice },
        };
        timelines.replace(tie.thread, tie.index, row);
    }
    reaps.retain(|reap| is_created(timelines, reap.child));
    (unknown, reaps)
}

/// Returns the children with an unrecorded reaping that ended during a wait but did not end it.
fn supposed_reaps<'f>(
    forest: &'f Forest<'_>,
    events: &'f ChildEvents,
    slice: &SliceRow,
    thread: ThreadIndex,
    parent: u32,
    waker: Option<u32>,
) -> impl Iterator<Item = SupposedReap> + use<'f> {
    let (start, wait_end) = (slice.off, returned_at(slice).unwrap_or(slice.off));
    let events = events.items_of(parent as usize);
    let first = events.partition_point(|event| event.at <= start);
    let during = events[first..].iter().take_while(move |event| event.at <= wait_end);
    let others = during.filter(move |event| event.kind == ChildEventKind::Ended && Some(event.child) != waker);
    let unrecorded = others.filter(|event| forest.launches[event.child as usize].instants.reaped.get().is_none());
    unrecorded.map(move |event| SupposedReap { parent, thread, child: event.child, start, ended: event.at, wait_end })
}

struct TieFinder<'t> {
    forest: &'t Forest<'t>,
    events: &'t ChildEvents,
    timelines: &'t Timelines,
    last: &'t HashMap<u32, ThreadIndex>,
    running: &'t RunningThreads,
}

impl TieFinder<'_> {
    fn ties_of(&self, thread: ThreadIndex) -> Vec<Tie> {
        let launch = self.timelines.launch_of(thread);
        let events = self.events.items_of(launch as usize);
        let slices = self.timelines.slices(thread).iter().enumerate();
        let waits = slices.filter(|(_, slice)| {
            let is_blocked = matches!(slice.reason, LeftCpu::Interruptible | LeftCpu::Uninterruptible);
            is_blocked && slice.waker.is_none() && slice.is_waker_certain.is_none()
        });
        waits.map(|(index, slice)| self.tie(thread, index, &slice, events)).collect()
    }

    fn tie(&self, thread: ThreadIndex, index: usize, slice: &SliceRow, events: &[ChildEvent]) -> Tie {
        let found =
            returned_at(slice).and_then(|returned| Some((returned, ending_event(events, slice, returned, self)?)));
        if let Some((returned, event)) = found {
            let waker = self.waker_of(&event);
            let late = returned.since(event.at);
            let is_near = late <= MAX_DELAY.max(Nanos(returned.since(slice.off).0 / MIN_WAIT_RATIO));
            if is_near && is_created(self.timelines, waker) {
                return Tie {
                    thread,
                    index,
                    waker: Some((waker, event.at.min(returned))),
                    is_certain: !is_read(slice),
                    earliest: None,
                };
            }
        }
        let waker = returned_at(slice)
            // A sleep, for example, is ended by a timer and not by a process.
            .filter(|_| waker_is_cause(slice))
            .and_then(|returned| {
                let span = (slice.off, returned);
                self.running.probable_waker(self.forest, self.timelines, thread, span)
            })
            .filter(|(waker, _)| is_created(self.timelines, *waker));
        Tie { thread, index, waker, is_certain: false, earliest: found.map(|(_, event)| event.at) }
    }

    fn waker_of(&self, event: &ChildEvent) -> ThreadIndex {
        match event.kind {
            ChildEventKind::Ended => self.last.get(&event.child).copied().unwrap_or(event.child),
            ChildEventKind::Released | ChildEventKind::Executed => event.child,
        }
    }
}

/// Returns the last event of a child during a wait that can have ended the wait.
fn ending_event(
    events: &[ChildEvent],
    slice: &SliceRow,
    returned: Nanos,
    finder: &TieFinder<'_>,
) -> Option<ChildEvent> {
    let begun = events.partition_point(|event| event.at <= slice.off);
    let end = events.partition_point(|event| event.at.0 <= returned.0 + LATE_EXIT.0);
    let during = events.get(begun..end)?.iter().rev();
    let mut can_end = during.filter(|event| match event.kind {
        ChildEventKind::Ended => slice.syscall.is_none_or(can_children_end),
        // After a vfork, the parent waits at once.
        ChildEventKind::Released | ChildEventKind::Executed => {
            let created = finder.forest.launches[event.child as usize].instants.created.get();
            event.at <= returned
                && created.is_some_and(|created| created >= beginning(slice) && created.0 <= slice.off.0 + MAX_DELAY.0)
        }
    });
    can_end.next().copied()
}

fn can_children_end(call: u16) -> bool {
    calls::FOR_CHILDREN.contains(&call) || calls::ENDED_BY_CHILDREN.contains(&call)
}

/// Whether the thread waited in a read, which may be for something other than a child.
fn is_read(slice: &SliceRow) -> bool {
    slice.syscall == Some(calls::READ)
}

fn task_of(forest: &Forest<'_>, timelines: &Timelines, thread: ThreadIndex) -> Option<TaskId> {
    let of_slice = timelines.slices(thread).last().map(|slice| slice.task);
    of_slice.or_else(|| forest.launches.get(thread as usize).map(|launch| TaskId(launch.id.0)))
}

fn ended_by(slice: &SliceRow, by: TaskId, at: Nanos) -> SliceRow {
    SliceRow {
        wake_span: Some(at.since(slice.off).min(slice.off_span.unwrap_or(Nanos(u64::MAX)))),
        waker: Some(WakerRow::Task(by)),
        ..*slice
    }
}

/// Maximum time by which a waker leaves its CPU before the wait ends.
const MAX_LEAD: Nanos = Nanos(100_000);
/// Maximum number of stretches that are searched for one wait.
const MAX_SEARCHED: usize = 64;

/// The stretches of all threads on a CPU (end, start, thread), sorted by their end.
struct RunningThreads(Vec<(Nanos, Nanos, ThreadIndex)>);

impl RunningThreads {
    fn new(timelines: &Timelines) -> RunningThreads {
        let threads = 0..timelines.threads.len() as ThreadIndex;
        let mut all: Vec<(Nanos, Nanos, ThreadIndex)> = Vec::new();
        for thread in threads {
            let slices = timelines.slices(thread).iter();
            let ran = slices.filter(|slice| slice.on_span.is_some_and(|span| span.0 > 0));
            all.extend(ran.map(|slice| (slice.off, beginning(&slice), thread)));
        }
        all.sort_unstable();
        RunningThreads(all)
    }

    /// Returns the thread that probably ended a wait of `waiter`, and when. Prefers threads of
    /// descendants to threads of siblings and their descendants.
    fn probable_waker(
        &self,
        forest: &Forest<'_>,
        timelines: &Timelines,
        waiter: ThreadIndex,
        (from, to): (Nanos, Nanos),
    ) -> Option<(ThreadIndex, Nanos)> {
        let earliest = Nanos(to.0.saturating_sub(MAX_LEAD.0)).max(from);
        let first = self.0.partition_point(|(off, ..)| *off < earliest);
        let near = self.0[first..].iter().take(MAX_SEARCHED);
        let candidates = near.filter(|(_, on, thread)| *on <= to && *thread != waiter);
        let own = timelines.launch_of(waiter) as usize;
        let with_distance = candidates.filter_map(|(off, _, thread)| {
            let distance = distance(forest, own, timelines.launch_of(*thread) as usize)?;
            Some((distance, *thread, (*off).min(to)))
        });
        let nearest = with_distance.min_by_key(|(distance, thread, _)| (*distance, *thread));
        nearest.map(|(_, thread, at)| (thread, at))
    }
}

/// Maximum number of generations between a waiting process and the process that it waits for.
const MAX_GENERATIONS: usize = 8;

/// Returns the distance of a launch from a launch that waits. Descendants are nearest; siblings and
/// their descendants are farther. `None` for all other launches.
fn distance(forest: &Forest<'_>, waiter: usize, other: usize) -> Option<usize> {
    let parent = forest.parent(waiter);
    let mut at = other;
    for generation in 0..MAX_GENERATIONS {
        if at == waiter {
            return Some(generation);
        }
        let above = forest.parent(at);
        if above.is_some() && above == parent {
            return Some(MAX_GENERATIONS + generation);
        }
        at = above?;
    }
    None
}
