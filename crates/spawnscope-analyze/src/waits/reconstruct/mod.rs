//! Reconstructs the waits of recordings without wakers. The ptrace collector records the waits for
//! children, and the CPU time of threads at some instants, but not what ended a wait. `ties`
//! connects recorded waits with the event of a child that ended them: its end, or its exec after a
//! vfork. `fill` creates slices for threads without slices. Waits with an uncertain cause are
//! stored in `UnknownWaits`, which widen the confidence interval of each prediction.

mod events;
mod fill;
mod ties;

use events::{ChildEventKind, ChildEvents, child_events};

use crate::model::creation_costs::creation_cost;
use crate::model::phases::Phase;
use crate::model::timeline::{ThreadIndex, Timelines, returned_at};
use crate::model::tree::Forest;
use crate::model::unknown_waits::{Creation, UnknownWait, UnknownWaits};
use foldhash::HashSet;
use spawnscope_data::event::{Constant, LeftCpu, Mechanism, Nanos, TaskId};
use spawnscope_data::rows::{ObjectRef, Recording, SliceRow, ThreadRow, WakerRow};

/// Adds the causes of waits to a recording whose collector did not record wakers. Does not change
/// other recordings.
pub fn reconstruct(
    recording: &Recording,
    forest: &Forest<'_>,
    threads: &[ThreadRow],
    mut timelines: Timelines,
) -> Timelines {
    if recording.info.sees_scheduler() || forest.root.is_none() {
        return timelines;
    }
    let events = child_events(forest);
    let (mut unknown, reaps) = ties::tie(forest, &events, &mut timelines);
    let (slices, more) = fill::fill(forest, &events, threads, &timelines);
    unknown.extend(more);
    forget_coincidences(forest, &mut unknown);
    timelines = timelines.with_slices(slices);
    let creations = creations(recording, forest, &events);
    let reaped = reaped(forest, &timelines, &unknown);
    timelines.unknown = Some(UnknownWaits { waits: unknown, reaps, creations, reaped });
    timelines
}

/// Returns, for each launch whose end is known to have ended a wait of its creator, when this wait
/// was over.
fn reaped(forest: &Forest<'_>, timelines: &Timelines, unknown: &[UnknownWait]) -> Vec<Option<Nanos>> {
    let uncertain: HashSet<(u32, Nanos)> = unknown.iter().map(|wait| (wait.launch, wait.end[1])).collect();
    let mut reaped = vec![None; forest.launches.len()];
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let launch = timelines.launch_of(thread);
        for slice in timelines.slices(thread).iter() {
            let Some((cause, end)) = timelines.cause(thread, &slice).zip(returned_at(&slice)) else { continue };
            let child = timelines.launch_of(cause);
            let ended = forest.launches[child as usize].instants.exit.get();
            let is_child = timelines.threads[child as usize].creator.get() == Some(thread);
            if is_child && ended.is_some_and(|ended| ended <= end) && !uncertain.contains(&(launch, end)) {
                reaped[child as usize] = Some(end);
            }
        }
    }
    reaped
}

/// Number of waits of a process that end with a child each, from which on this is no coincidence.
const MIN_REPEATED: usize = 5;
/// Share of the waits of a process with an uncertain cause that must do so.
const REPEATED_SHARE: f64 = 0.9;

/// Drops the waits whose supposed cause is certain because the process waited so again and again:
/// if it had waited for something else, only some of its waits would have ended with a child.
fn forget_coincidences(forest: &Forest<'_>, unknown: &mut Vec<UnknownWait>) {
    let ends_with_child = |wait: &UnknownWait| {
        let [first, last] = wait.end;
        // Where the CPU time is unknown, a thread only seems to be idle as long as its children.
        let launch = &forest.launches[wait.launch as usize];
        let knows_cpu = launch.cpu_phases.get(Phase::Run).or(launch.last_run_cpu.get()).is_some();
        let is_short = last.since(first).0 as f64 <= (1.0 - REPEATED_SHARE) * wait.span.0 as f64;
        knows_cpu && is_short && wait.supposed.is_some()
    };
    let mut counts = vec![[0_usize; 2]; forest.launches.len()];
    for wait in &*unknown {
        let [all, with_child] = &mut counts[wait.launch as usize];
        *all += 1;
        *with_child += usize::from(ends_with_child(wait));
    }
    unknown.retain(|wait| {
        let [all, with_child] = counts[wait.launch as usize];
        let is_repeated = with_child >= MIN_REPEATED && with_child as f64 >= REPEATED_SHARE * all as f64;
        !is_repeated || !ends_with_child(wait)
    });
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    from: Nanos,
    /// When the cause of the wait ended it.
    woken: Nanos,
    /// When the thread was on a CPU again.
    to: Nanos,
    /// Preempted for a wait for a CPU, stopped for a stop by the collector.
    reason: LeftCpu,
    syscall: Option<u16>,
    waker: Option<WakerRow>,
    object: Option<ObjectRef>,
    /// The calls of the thread before, since its last wait.
    calls: Option<u32>,
}

impl Wait {
    /// Returns the slice of a thread that got a CPU at `on` and then made this wait.
    fn slice(&self, task: TaskId, on: Nanos) -> SliceRow {
        SliceRow {
            off_span: Some(self.to.since(self.from)),
            wake_span: (self.reason != LeftCpu::Preempted).then_some(self.woken.since(self.from)),
            syscall: self.syscall,
            waker: self.waker,
            object: self.object,
            is_waker_certain: (self.reason == LeftCpu::Stopped).then_some(true),
            calls: self.calls,
            ..slice(task, on, self.from, self.reason)
        }
    }
}

/// Returns a slice without a wait.
fn slice(task: TaskId, on: Nanos, off: Nanos, reason: LeftCpu) -> SliceRow {
    SliceRow {
        task,
        off,
        on_span: Some(off.since(on)),
        off_span: None,
        wake_span: None,
        reason,
        syscall: None,
        argument: None,
        waker: None,
        object: None,
        calls: None,
        is_waker_certain: None,
    }
}

/// Returns, for each launch, the time of its parent that was the creation of the launch. Zero if
/// the creation is known.
fn creations(recording: &Recording, forest: &Forest<'_>, events: &ChildEvents) -> Vec<Creation> {
    let measured = |what| Nanos(creation_cost(recording, what).unwrap_or_default() as u64);
    let creating = [Constant::ForkCreate, Constant::VforkCreate].map(measured);
    let [fork_exit, vfork_exit] = [Constant::ForkExit, Constant::VforkExit].map(measured);
    let reaping = [fork_exit.max(creating[0]), vfork_exit.max(creating[1])];
    let copy = measured(Constant::PageCopy);
    let mut all = vec![Creation::default(); forest.launches.len()];
    for parent in 0..forest.launches.len() {
        let spans = before_creations(forest, events, parent);
        // Creations by one parent take about the same time, and the parent may do other work before
        // some of them.
        let mut sorted: Vec<Nanos> = spans.iter().map(|before| before.span).collect();
        sorted.sort_unstable();
        let Some(median) = sorted.get(sorted.len().saturating_sub(1) / 2) else { continue };
        let mut copied = 0;
        for BeforeCreation { child, last, span, is_after_end } in spans {
            let launch = &forest.launches[child];
            let longest = span.min(*median);
            // After the end of a child, its parent also reaps it, and its pages have to be made
            // writable again. This takes about as long as the end of the child that was measured
            // with the creation.
            // The memory is not read again before creations that cannot take long.
            copied = launch.parent_rss_bytes.get().unwrap_or(copied);
            let is_vfork = matches!(launch.mechanism, Some(Mechanism::Vfork | Mechanism::PosixSpawn));
            let [supposed, least] = [if is_after_end { reaping } else { creating }, creating].map(|[fork, vfork]| {
                longest.min(if is_vfork { vfork } else { Nanos(fork.0 + copy.0.saturating_mul(copied >> 20)) })
            });
            let created = launch.instants.created.get().unwrap_or(last);
            let from = if supposed == span { last } else { Nanos(created.0.saturating_sub(supposed.0)) };
            all[child] = Creation { supposed, least, longest, stopped: forest.stopped(parent, from, created) };
        }
    }
    all
}

/// What is known about the time of a parent before it created a child.
struct BeforeCreation {
    child: usize,
    /// The last known event of the parent or of its children.
    last: Nanos,
    /// The time since then.
    span: Nanos,
    /// Whether this event was the end of a child.
    is_after_end: bool,
}

/// Returns the children of a parent whose creation is unknown.
fn before_creations(forest: &Forest<'_>, events: &ChildEvents, parent: usize) -> Vec<BeforeCreation> {
    let events_of_children = events.items_of(parent);
    let launch = &forest.launches[parent];
    let mut before = launch.start();
    let mut spans = Vec::new();
    for &child in forest.children(parent) {
        let at = &forest.launches[child].instants;
        let Some(created) = at.created.get() else { continue };
        let earlier = events_of_children.partition_point(|event| event.at < created);
        let event = earlier.checked_sub(1).map(|index| events_of_children[index]);
        let execs = launch.execs_until(created).last().and_then(|exec| exec.returned.get());
        let last = [before, event.map(|event| event.at), execs];
        let last = last.into_iter().flatten().filter(|at| *at <= created).max();
        if let Some(last) = last.filter(|_| at.create.get().is_none()) {
            let is_after_end = event.is_some_and(|event| event.kind == ChildEventKind::Ended && event.at == last);
            let span = created.since(last).since(forest.stopped(parent, last, created));
            spans.push(BeforeCreation { child, last, span, is_after_end });
        }
        before = Some(created);
    }
    spans
}
