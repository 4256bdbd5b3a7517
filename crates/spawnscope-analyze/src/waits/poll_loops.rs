//! Loops that poll: short sleeps that a thread repeats until something has happened, such as `while
//! p.is_alive(): sleep(0.001)`, or a shell that executes `sleep 0.1` until a file exists. What
//! ended the last sleep is a timer, but what ended the loop is the process or thread that the loop
//! waited for. A recording shows no wake-up for that. The loop is therefore tied to what ended
//! during its last sleep: the child that the thread reaped next, another thread or a descendant
//! that ended, or a thread of the process that worked last. In the code, such a sleep is a nap,
//! whichever system call has the timer, and consecutive naps are a streak.

use std::collections::BTreeSet;

use crate::model::external_wait::{ExternalWait, external_wait_of, is_sleep};
use crate::model::launch::MaybeKnown;
use crate::model::poll_loop::PollLoop;
use crate::model::timeline::{ThreadIndex, Timelines, beginning, woken_at, worked_until};
use crate::waits::child_waits::{Reaps, is_created};
use foldhash::HashMap;
use spawnscope_data::event::syscalls::number;
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::rows::{SliceRow, WakerRow};

/// The system call with which the kernel continues a sleep after a signal.
pub(super) const RESTART_SYSCALL: u16 = number("restart_syscall");
/// Minimum number of sleeps of a loop. One sleep may have any purpose.
const MIN_NAPS: usize = 2;
/// How much longer or shorter the next sleep of a loop may be. Some loops double their sleeps.
const MAX_GROWTH: f64 = 2.5;
/// Maximum wait for another thread of the process between two sleeps, such as for the lock of
/// Python's interpreter.
const MAX_LOCKED: Nanos = Nanos(20_000_000);
/// Maximum number of threads that are considered as the one that a loop waited for.
const MAX_CANDIDATES: usize = 64;
/// Maximum number of generations between a thread that polls and a descendant.
const MAX_GENERATIONS: usize = 64;

/// Finds all loops that poll. `threads` are those that slept, `exits` contains the start of each
/// launch's exit.
pub(super) fn find(
    timelines: &Timelines,
    threads: &BTreeSet<ThreadIndex>,
    reaps: &Reaps,
    exits: &[MaybeKnown],
) -> Vec<PollLoop> {
    let (mut sleepers, mut sleeping_threads) = (Vec::new(), BTreeSet::new());
    for &thread in threads {
        let naps = naps_of(timelines, thread);
        if let Some(sleeper) = sleeper_of(timelines, thread, &naps) {
            sleepers.push(sleeper);
        } else if naps.len() >= MIN_NAPS {
            sleeping_threads.insert(thread);
        }
    }
    let creations = Creations::by(timelines, &sleeping_threads);
    let streaks = sleeping_threads.iter().flat_map(|thread| streaks_of(timelines, *thread, &creations, exits));
    let mut streaks: Vec<Streak> = streaks.collect();
    streaks.extend(streaks_of_sleepers(timelines, reaps, sleepers));
    streaks.retain(|streak| streak.checks.len() >= MIN_NAPS);
    if streaks.is_empty() {
        return Vec::new();
    }
    let search = Search { timelines, reaps, ends: ends_by_time(timelines), sleeping: sleeping_threads };
    streaks.into_iter().filter_map(|streak| search.loop_of(streak)).collect()
}

/// Consecutive sleeps of a thread, or of children that a thread executes one after the other.
#[derive(Debug)]
struct Streak {
    thread: ThreadIndex,
    /// For each sleep, when the check of the condition before it began.
    checks: Vec<Nanos>,
    /// When the last sleep ended.
    end: Nanos,
}

impl Streak {
    /// Returns the time in which the loop was ended: from the last check that failed to the end of
    /// the last sleep.
    fn last_window(&self) -> (Nanos, Nanos) {
        (self.checks.last().copied().unwrap_or(self.end), self.end)
    }
}

/// A process that does nothing but sleep.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    creator: ThreadIndex,
    process: ThreadIndex,
    created: Nanos,
    nap: Nanos,
}

/// Whether a timer ended the wait after a slice, so that the wait is a nap.
pub(super) fn is_nap(slice: &SliceRow) -> bool {
    let is_wait = slice.reason == LeftCpu::Interruptible && slice.wake_span.is_some();
    is_wait && external_wait_of(slice) == ExternalWait::Timer
}

/// Returns the lengths of the first sleeps of a thread, enough to recognize a loop.
fn naps_of(timelines: &Timelines, thread: ThreadIndex) -> Vec<Nanos> {
    let naps = timelines.slices(thread).iter().filter(is_nap);
    naps.filter_map(|nap| nap.wake_span).take(MIN_NAPS).collect()
}

/// Returns the process of a thread if it slept once, longer than it worked, such as `sleep 0.1`.
fn sleeper_of(timelines: &Timelines, thread: ThreadIndex, naps: &[Nanos]) -> Option<Sleeper> {
    let [nap] = *naps else { return None };
    let known = timelines.threads[thread as usize];
    let (created, creator) = (known.created.get()?, known.creator.get()?);
    let worked: u64 = timelines.slices(thread).iter().filter_map(|slice| Some(slice.on_span?.0)).sum();
    let is_process = known.launch == thread;
    (is_process && nap.0 >= worked).then_some(Sleeper { creator, process: thread, created, nap })
}

/// Returns the streaks of a thread, without those that its kill or its exit ended.
fn streaks_of(timelines: &Timelines, thread: ThreadIndex, creations: &Creations, exits: &[MaybeKnown]) -> Vec<Streak> {
    let exit = exits[timelines.launch_of(thread) as usize].get();
    let killed = timelines.kills.iter().find(|kill| kill.killed == thread).map(|kill| kill.at);
    let (mut streaks, mut current) = (Vec::new(), Naps::default());
    let slices = timelines.slices(thread);
    for (index, slice) in slices.indices().zip(slices.iter()) {
        current.worked += slice.on_span.unwrap_or_default().0;
        let is_killed = killed.is_some_and(|at| slice.off < at && woken_at(&slice).is_some_and(|woken| at <= woken));
        if timelines.repeated_waits.contains_key(&index) || is_killed && current.may_contain(&slice) {
            // Not a streak: the wait is repeated until another one ends, or a kill ended it.
            current.take(thread);
        } else if is_nap(&slice) {
            let has_created =
                current.end().is_some_and(|end| creations.between(thread, (end, slice.off)).next().is_some());
            if has_created || !current.continues_with(&slice) {
                streaks.extend(current.take(thread));
            }
            current.add(&slice);
        } else if !may_continue_after(timelines, thread, &slice) {
            streaks.extend(current.take(thread));
        }
    }
    // A sleep that the exit of the process ended did not wait for anything.
    let last = current.take(thread);
    streaks.extend(last.filter(|streak| exit.is_none_or(|exit| streak.end <= exit)));
    streaks
}

/// Whether a loop may continue after this slice: the thread waited for a CPU, or for a lock of the
/// process.
pub(super) fn may_continue_after(timelines: &Timelines, thread: ThreadIndex, slice: &SliceRow) -> bool {
    match slice.reason {
        LeftCpu::Created | LeftCpu::Preempted => true,
        LeftCpu::Ended | LeftCpu::Stopped => false,
        LeftCpu::Interruptible | LeftCpu::Uninterruptible => {
            let cause = timelines.cause(thread, slice).map(|cause| timelines.launch_of(cause));
            cause == Some(timelines.launch_of(thread)) && slice.wake_span.is_some_and(|span| span <= MAX_LOCKED)
        }
    }
}

/// The streak that a thread is in.
#[derive(Debug, Default)]
struct Naps {
    naps: Vec<(Nanos, Nanos)>,
    syscall: Option<u16>,
    /// CPU time since the last sleep.
    worked: u64,
    /// Whether a signal interrupted the last sleep.
    was_interrupted: bool,
}

impl Naps {
    fn end(&self) -> Option<Nanos> {
        self.naps.last().map(|(_, end)| *end)
    }

    /// Whether a sleep continues the streak: the same call, after less work than sleep.
    fn continues_with(&self, slice: &SliceRow) -> bool {
        let Some((off, end)) = self.naps.last() else { return true };
        let is_same_call = [self.syscall, Some(RESTART_SYSCALL)].contains(&slice.syscall);
        is_same_call && self.worked <= end.since(*off).0.max(slice.wake_span.unwrap_or_default().0)
    }

    /// Whether a wait that was cut short may be a sleep of the streak.
    fn may_contain(&self, wait: &SliceRow) -> bool {
        let last = self.naps.last().map_or(0, |(off, end)| end.since(*off).0);
        wait.wake_span.unwrap_or_default().0 as f64 <= last as f64 * MAX_GROWTH
    }

    fn add(&mut self, slice: &SliceRow) {
        if self.naps.is_empty() {
            self.syscall = slice.syscall;
        }
        let end = woken_at(slice).unwrap_or(slice.off);
        match self.naps.last_mut().filter(|_| std::mem::take(&mut self.was_interrupted)) {
            Some((_, last)) => *last = end,
            None => self.naps.push((slice.off, end)),
        }
        // A signal ended this sleep. The thread sleeps for the rest of the time next.
        let by_thread = matches!(slice.waker, Some(WakerRow::Task(_))) && slice.is_waker_certain == Some(true);
        self.was_interrupted = by_thread && is_sleep(slice);
        self.worked = 0;
    }

    fn take(&mut self, thread: ThreadIndex) -> Option<Streak> {
        let naps = std::mem::take(self).naps;
        let ((first, _), (_, end)) = (naps.first()?, naps.last()?);
        // After each sleep, the thread checks whether it needs another one.
        let checks: Vec<Nanos> = std::iter::once(*first).chain(naps.iter().map(|(_, end)| *end)).collect();
        Some(Streak { thread, checks: checks[..naps.len()].to_vec(), end: *end })
    }
}

/// Returns the streaks of processes that only sleep, each reaped before the next was created.
/// Between two of them, the parent may have executed another program, which tested the condition.
fn streaks_of_sleepers(timelines: &Timelines, reaps: &Reaps, mut sleepers: Vec<Sleeper>) -> Vec<Streak> {
    sleepers.sort_unstable_by_key(|sleeper| (sleeper.creator, sleeper.created));
    let creators: BTreeSet<ThreadIndex> = sleepers.iter().map(|sleeper| sleeper.creator).collect();
    let parents: BTreeSet<u32> = creators.iter().map(|creator| timelines.launch_of(*creator)).collect();
    let reaps_of_all = parents.iter().flat_map(|parent| reaps.of_launch(*parent));
    let reaped_at: HashMap<u32, Nanos> = reaps_of_all.map(|reap| (reap.child, reap.reaped)).collect();
    let creations = Creations::by(timelines, &creators);
    let is_part_of_loop = |parent: ThreadIndex, (from, to): (Nanos, Nanos)| {
        let mut between = creations.between(parent, (from, to));
        let test = between.next();
        let has_ended = test.is_none_or(|test| reaped_at.get(&test).is_some_and(|reaped| *reaped <= to));
        has_ended && between.next().is_none()
    };
    let mut streaks: Vec<(Streak, Sleeper)> = Vec::new();
    for sleeper in sleepers {
        let Some(reaped) = reaped_at.get(&sleeper.process).copied() else { continue };
        if let Some((streak, last)) = streaks.last_mut()
            && streak.thread == sleeper.creator
            && is_similar(last.nap, sleeper.nap)
            && streak.end <= sleeper.created
            && is_part_of_loop(sleeper.creator, (streak.end, sleeper.created))
        {
            streak.checks.push(streak.end);
            (streak.end, *last) = (reaped, sleeper);
        } else {
            streaks.push((Streak { thread: sleeper.creator, checks: vec![sleeper.created], end: reaped }, sleeper));
        }
    }
    streaks.into_iter().map(|(streak, _)| streak).collect()
}

/// The threads and processes that some threads created, ordered by creator and time.
pub(super) struct Creations(Vec<(ThreadIndex, Nanos, ThreadIndex)>);

impl Creations {
    pub(super) fn by(timelines: &Timelines, creators: &BTreeSet<ThreadIndex>) -> Creations {
        if creators.is_empty() {
            return Creations(Vec::new());
        }
        let created = (0..).zip(&timelines.threads).filter_map(|(index, thread)| {
            let creator = thread.creator.get().filter(|creator| creators.contains(creator))?;
            Some((creator, thread.created.get()?, index))
        });
        let mut created: Vec<_> = created.collect();
        created.sort_unstable();
        Creations(created)
    }

    /// Returns what a thread created from `from` up to just before `to`.
    pub(super) fn between(
        &self,
        creator: ThreadIndex,
        (from, to): (Nanos, Nanos),
    ) -> impl Iterator<Item = ThreadIndex> + '_ {
        let begun = self.0.partition_point(|(other, at, _)| (*other, *at) < (creator, from));
        let between = self.0[begun..].iter().take_while(move |(other, at, _)| *other == creator && *at < to);
        between.map(|(.., created)| *created)
    }
}

fn is_similar(one: Nanos, other: Nanos) -> bool {
    let (one, other) = (one.0.max(1) as f64, other.0.max(1) as f64);
    (1.0 / MAX_GROWTH..=MAX_GROWTH).contains(&(one / other))
}

fn ends_by_time(timelines: &Timelines) -> Vec<(Nanos, ThreadIndex)> {
    let threads = 0..timelines.threads.len() as ThreadIndex;
    let ends = threads.filter_map(|thread| {
        let last = timelines.slices(thread).last().filter(|last| last.reason == LeftCpu::Ended)?;
        Some((last.off, thread))
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    ends
}

/// How a thread is related to a thread that polls, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    OwnThreadOrDescendant,
    Sibling,
}

struct Search<'t> {
    timelines: &'t Timelines,
    reaps: &'t Reaps,
    ends: Vec<(Nanos, ThreadIndex)>,
    /// The threads that sleep repeatedly themselves.
    sleeping: BTreeSet<ThreadIndex>,
}

impl Search<'_> {
    fn loop_of(&self, streak: Streak) -> Option<PollLoop> {
        let start = *streak.checks.first()?;
        let (awaited, at) = self
            .reaped_next(&streak)
            .or_else(|| self.ended(&streak, start))
            .or_else(|| self.worked_last(streak.thread, streak.last_window()))
            .filter(|(awaited, _)| self.is_replayed(streak.thread, *awaited))?;
        Some(PollLoop { thread: streak.thread, checks: streak.checks.into(), end: streak.end, awaited, at })
    }

    /// Whether a replay of the polling thread has the other thread, too.
    fn is_replayed(&self, polls: ThreadIndex, other: ThreadIndex) -> bool {
        is_created(self.timelines, other) || other == self.timelines.launch_of(polls)
    }

    /// Returns the child that ended during the last sleep and that the thread reaped after it,
    /// before it blocked again.
    fn reaped_next(&self, streak: &Streak) -> Option<(ThreadIndex, Nanos)> {
        let slices = self.timelines.slices(streak.thread);
        let next = slices.partition_point(|slice| beginning(slice) < streak.end || slice.off <= streak.end);
        let until = slices.get(next).map_or(streak.end, |next| next.off);
        let reaps = self.reaps.between(self.timelines.launch_of(streak.thread), streak.end, until).iter();
        let reaps = reaps.filter(|reap| streak.last_window().0 < reap.zombie && reap.zombie <= streak.end);
        let reap = reaps.max_by_key(|reap| reap.zombie)?;
        let begun = self.ends.partition_point(|(end, _)| *end <= reap.zombie);
        let near = self.ends[..begun].iter().rev().take(MAX_CANDIDATES);
        let last = near.map(|(_, thread)| *thread).find(|thread| self.timelines.launch_of(*thread) == reap.child);
        Some((last.unwrap_or(reap.child), reap.zombie))
    }

    /// Returns the related thread that ended last during the last sleep. If its creator worked on
    /// after that, returns the creator, which learned of the end first.
    fn ended(&self, streak: &Streak, start: Nanos) -> Option<(ThreadIndex, Nanos)> {
        let (from, to) = streak.last_window();
        let [begun, ended] = [from, to].map(|at| self.ends.partition_point(|(end, _)| *end <= at));
        let near = self.ends[begun..ended.max(begun)].iter().rev().take(MAX_CANDIDATES);
        let related =
            near.filter_map(|(end, thread)| Some((self.relation(streak.thread, *thread, start)?, *thread, *end)));
        // On a tie, `reduce` keeps the first thread, which ended last.
        let (_, mut thread, mut at) = related.reduce(|one, other| if other.0 < one.0 { other } else { one })?;
        let own = self.timelines.launch_of(streak.thread);
        for _ in 0..MAX_GENERATIONS {
            let first = self.timelines.launch_of(thread);
            let Some(creator) = self.timelines.threads[first as usize].creator.get() else { break };
            if first == own || creator == streak.thread {
                break;
            }
            let Some(until) = worked_until(self.timelines.slices(creator), (at, to)) else { break };
            (thread, at) = (creator, until);
        }
        Some((thread, at))
    }

    /// Returns how a thread is related to a thread that polls. `None` if it is not, or if the loop
    /// itself launched it.
    fn relation(&self, polls: ThreadIndex, other: ThreadIndex, start: Nanos) -> Option<Relation> {
        let timelines = self.timelines;
        let own = timelines.launch_of(polls);
        let parent = timelines.parent_of(own);
        let mut launch = timelines.launch_of(other);
        if launch == own {
            return (other != polls).then_some(Relation::OwnThreadOrDescendant);
        }
        for _ in 0..MAX_GENERATIONS {
            let known = timelines.threads[launch as usize];
            let above = timelines.parent_of(launch)?;
            if above == own {
                let is_of_loop = known.creator.get() == Some(polls) && known.created.get().is_none_or(|at| at >= start);
                return (!is_of_loop).then_some(Relation::OwnThreadOrDescendant);
            }
            if parent == Some(above) {
                return Some(Relation::Sibling);
            }
            launch = above;
        }
        None
    }

    /// Returns the other thread of the process that worked last during the last sleep. Threads that
    /// sleep repeatedly, such as those that serve timers in Go, do not wait for each other.
    fn worked_last(&self, polls: ThreadIndex, window: (Nanos, Nanos)) -> Option<(ThreadIndex, Nanos)> {
        let own = self.timelines.launch_of(polls);
        let threads = self.timelines.multithreaded.get(&own)?.iter().copied();
        let threads = threads.filter(|thread| *thread != polls && !self.sleeping.contains(thread));
        let worked = threads.filter_map(|other| Some((other, worked_until(self.timelines.slices(other), window)?)));
        worked.max_by_key(|(thread, until)| (*until, *thread))
    }
}
