//! Creates slices from instants and CPU times, for a collector that recorded neither CPUs nor
//! wakers. Time in which a thread used no CPU was a wait: for the processes and threads that it
//! created if it had any, and otherwise for something unknown. Recorded waits are kept.

use foldhash::{HashMap, HashSet};
use spawnscope_data::event::{LeftCpu, Nanos, ObjectKind, TaskId};
use spawnscope_data::rows::{ObjectRef, Origin, Recording, SliceRow, ThreadRow, WakerRow};

use super::events::{ChildEvent, ChildEventKind, ChildEvents, end_of};
use super::{Wait, slice};
use crate::model::phases::Phase;
use crate::model::slices::Slices;
use crate::model::timeline::{Thread, ThreadIndex, Timelines, returned_at, woken_at};
use crate::model::tree::Forest;
use crate::model::unknown_waits::UnknownWait;
use crate::waits::child_waits::{creator_of, is_created};

/// Minimum length of a wait. Shorter waits count as work.
const MIN_SPAN: Nanos = Nanos(20_000);

/// Creates the slices of all threads. Also returns the waits whose cause is uncertain.
pub(super) fn fill(
    forest: &Forest<'_>,
    events: &ChildEvents,
    rows: &[ThreadRow],
    timelines: &Timelines,
) -> (Slices, Vec<UnknownWait>) {
    let rows = rows.iter().filter_map(|row| Some((timelines.thread(row.task)?, row)));
    let rows: HashMap<ThreadIndex, &ThreadRow> = rows.collect();
    let (mut slices, mut unknown) = (Slices::default(), Vec::new());
    let mut stops = stops(forest.recording());
    let launching: HashSet<ThreadIndex> = first_threads(timelines).filter_map(|thread| thread.creator.get()).collect();
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let Some(lifetime) = Lifetime::new(forest, timelines, thread, &rows) else { continue };
        let mut waits = recorded_waits(timelines, thread);
        waits.extend(stops.remove(&lifetime.task).into_iter().flatten());
        waits.sort_by_key(|wait| wait.from);
        let threads = events_of_threads(timelines, &lifetime, &rows, &launching);
        let stretches = stretches(forest, events, timelines, &lifetime, (&threads, &waits));
        waits.extend(waits_within(timelines, &lifetime, &stretches, &waits, &mut unknown));
        waits.sort_by_key(|wait| wait.from);
        let last = timelines.slices(thread).iter().last().filter(|slice| slice.reason == LeftCpu::Ended);
        lifetime.write(&waits, last.and_then(|slice| slice.calls), |row| slices.push(row));
    }
    (slices, unknown)
}

/// The lifetime of a thread, and the CPU time that it used.
struct Lifetime {
    thread: ThreadIndex,
    launch: u32,
    task: TaskId,
    created: Nanos,
    first_run: Nanos,
    /// The end of the thread, or the end of the recording if it still existed then.
    end: Nanos,
    has_ended: bool,
    /// The intervals in which the thread was in `run`. All other phases count as work.
    runs: Vec<(Nanos, Nanos)>,
    /// CPU time of the thread in `runs`.
    cpu: Option<Nanos>,
}

impl Lifetime {
    fn new(
        forest: &Forest<'_>,
        timelines: &Timelines,
        thread: ThreadIndex,
        rows: &HashMap<ThreadIndex, &ThreadRow>,
    ) -> Option<Lifetime> {
        let Some(launch) = forest.launches.get(thread as usize) else {
            return Lifetime::for_additional_thread(forest, timelines, thread, rows);
        };
        let created = launch.instants.created.get()?;
        let first_run = launch.instants.first_run.get().unwrap_or(created).max(created);
        let end = end_of(launch).unwrap_or(forest.end).max(first_run);
        let pieces = launch.pieces(Some(forest.end)).into_iter();
        let runs = pieces.filter(|piece| piece.phase == Phase::Run);
        let mut runs: Vec<_> = runs.map(|piece| (piece.start.max(first_run), piece.end.min(end))).collect();
        // If the end of the loader is unknown, the run may begin where the program begins.
        let program = launch.execs.last().filter(|exec| exec.load_end.get().is_none());
        if let Some(begun) = program.and_then(|exec| exec.returned.get().or(exec.enter.get())) {
            runs.push((begun.max(first_run), launch.instants.exit.get().unwrap_or(end).min(end)));
        }
        runs.retain(|(start, end)| start < end);
        Some(Lifetime {
            thread,
            launch: thread,
            task: TaskId(launch.id.0),
            created,
            first_run,
            end,
            has_ended: !launch.is_unfinished(),
            runs,
            cpu: launch
                .cpu_phases
                .get(Phase::Run)
                .or(launch.last_run_cpu.get())
                .filter(|_| launch.origin != Origin::Existed),
        })
    }

    /// Returns how much of a wait is time in `runs`. A stop may happen in any phase, so only its
    /// part within `runs` counts.
    fn span_in_runs(&self, wait: &Wait) -> u64 {
        if wait.reason != LeftCpu::Stopped {
            return wait.to.since(wait.from).0;
        }
        self.runs.iter().map(|(start, end)| wait.to.min(*end).since(wait.from.max(*start)).0).sum()
    }

    fn has_created(&self, timelines: &Timelines, child: u32) -> bool {
        creator_of(timelines, child, self.launch) == self.thread
    }

    fn for_additional_thread(
        forest: &Forest<'_>,
        timelines: &Timelines,
        thread: ThreadIndex,
        rows: &HashMap<ThreadIndex, &ThreadRow>,
    ) -> Option<Lifetime> {
        let known = timelines.threads[thread as usize];
        let launch = &forest.launches[known.launch as usize];
        let row = rows.get(&thread)?;
        let process_end = end_of(launch).unwrap_or(forest.end);
        let end = row.ended.unwrap_or(process_end).max(row.created);
        Some(Lifetime {
            thread,
            launch: known.launch,
            task: row.task,
            created: row.created,
            first_run: row.created,
            end,
            has_ended: row.ended.is_some() || !launch.is_unfinished(),
            runs: vec![(row.created, end)],
            cpu: row.cpu,
        })
    }

    /// Writes the slices of the thread. `waits` must be in order.
    fn write(&self, waits: &[Wait], last_calls: Option<u32>, mut write: impl FnMut(SliceRow)) {
        let mut on = self.first_run;
        if self.first_run > self.created {
            write(SliceRow {
                on_span: None,
                off_span: Some(self.first_run.since(self.created)),
                ..slice(self.task, self.created, self.created, LeftCpu::Created)
            });
        }
        for wait in waits {
            // Waits of a thread can overlap slightly, because instants are inaccurate.
            let from = wait.from.max(on);
            let to = wait.to.min(self.end);
            if from < to {
                let woken = wait.woken.clamp(from, to);
                write(Wait { from, woken, to, ..*wait }.slice(self.task, on));
                on = to;
            }
        }
        let reason = if self.has_ended { LeftCpu::Ended } else { LeftCpu::Preempted };
        write(SliceRow { calls: last_calls, ..slice(self.task, on.min(self.end), self.end, reason) });
    }
}

/// A part of a thread's run, between two events of the thread or of what it has created.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: Nanos,
    end: Nanos,
    awaited: Option<Awaited>,
}

/// A child or a thread of the same process whose event ended a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Awaited {
    thread: ThreadIndex,
    task: TaskId,
    /// Whether the stretch was certainly a wait for it.
    is_certain: bool,
}

impl Stretch {
    fn span(&self) -> u64 {
        self.end.since(self.start).0
    }

    /// Returns when a wait of this duration is assumed to start and end in the stretch. If no child
    /// is awaited, the thread launches or reaps at the end of the stretch, so it must be on a CPU
    /// then.
    fn wait_interval(&self, span: u64) -> (Nanos, Nanos) {
        match self.awaited {
            Some(_) => (Nanos(self.end.0 - span.min(self.span())), self.end),
            None => (self.start, Nanos((self.start.0 + span).min(self.end.0 - 1))),
        }
    }
}

fn recorded_waits(timelines: &Timelines, thread: ThreadIndex) -> Vec<Wait> {
    let slices = timelines.slices(thread).iter();
    let waits = slices.filter_map(|slice| {
        let to = returned_at(&slice)?;
        let woken = woken_at(&slice).unwrap_or(to);
        // An import knows the waker and the object of a wait for a scanner's permission.
        let is_scan = slice.object.map(ObjectRef::kind) == Some(ObjectKind::Permission);
        let waker = slice.waker.filter(|waker| is_scan || matches!(waker, WakerRow::Task(_)));
        matches!(slice.reason, LeftCpu::Interruptible | LeftCpu::Preempted).then_some(Wait {
            from: slice.off,
            woken,
            to,
            reason: slice.reason,
            syscall: slice.syscall,
            waker,
            object: slice.object.filter(|_| is_scan),
            calls: slice.calls,
        })
    });
    waits.collect()
}

/// Returns the times in which the collector stopped each thread.
fn stops(recording: &Recording) -> HashMap<TaskId, Vec<Wait>> {
    let mut stops: HashMap<TaskId, Vec<Wait>> = HashMap::default();
    for row in &recording.stops {
        let to = Nanos(row.at.0.saturating_add(row.span.0));
        let reason = LeftCpu::Stopped;
        let stop = Wait { from: row.at, woken: to, to, reason, syscall: None, waker: None, object: None, calls: None };
        stops.entry(row.task).or_default().push(stop);
    }
    stops
}

/// An instant that divides the run of a thread, and what the thread may have waited for until then.
type Point = (Nanos, Option<Awaited>);

fn first_threads(timelines: &Timelines) -> impl Iterator<Item = &Thread> {
    timelines.threads.iter().take(timelines.launch_count() as usize)
}

/// Returns when a thread created others that launch, and when these ended. Threads that launch
/// nothing are left out: what they did is unknown, so a wait for them would explain nothing.
fn events_of_threads(
    timelines: &Timelines,
    lifetime: &Lifetime,
    rows: &HashMap<ThreadIndex, &ThreadRow>,
    launching: &HashSet<ThreadIndex>,
) -> Vec<Point> {
    let others = timelines.multithreaded.get(&lifetime.launch).into_iter().flatten();
    let created = others.filter(|other| {
        launching.contains(other)
            && **other >= timelines.launch_count()
            && timelines.threads[**other as usize].creator.get() == Some(lifetime.thread)
    });
    let rows = created.filter_map(|other| Some((*other, rows.get(other)?)));
    let points = rows.flat_map(|(other, row)| {
        let awaited = Awaited { thread: other, task: row.task, is_certain: false };
        [Some((row.created, None)), row.ended.map(|ended| (ended, Some(awaited)))]
    });
    points.flatten().collect()
}

/// Divides the run of a thread at its launches, and at the events of its children and `threads`.
/// Leaves out recorded waits, and the work before and after them.
fn stretches(
    forest: &Forest<'_>,
    events: &ChildEvents,
    timelines: &Timelines,
    lifetime: &Lifetime,
    (threads, recorded): (&[Point], &[Wait]),
) -> Vec<Stretch> {
    let ends = events.items_of(lifetime.launch as usize).iter();
    let ends =
        ends.filter(|event| event.kind != ChildEventKind::Executed && lifetime.has_created(timelines, event.child));
    let awaited = |event: &ChildEvent| Awaited {
        thread: event.child,
        task: TaskId(forest.launches[event.child as usize].id.0),
        is_certain: event.kind == ChildEventKind::Released,
    };
    let mut points: Vec<Point> = ends.map(|event| (event.at, Some(awaited(event)))).collect();
    points.extend(threads);
    let children = forest.children(lifetime.launch as usize).iter();
    let children = children.filter(|child| lifetime.has_created(timelines, **child as u32));
    for child in children {
        let at = &forest.launches[*child].instants;
        points.extend([at.created.get(), at.reaped.get()].into_iter().flatten().map(|at| (at, None)));
    }
    points.sort_unstable();
    let mut stretches = Vec::with_capacity(points.len() + lifetime.runs.len());
    for (start, end) in lifetime.runs.iter().copied() {
        let first = points.partition_point(|(at, _)| *at <= start);
        let mut from = start;
        let within = points[first..].iter().copied().take_while(|(at, _)| *at < end);
        for (at, awaited) in within.chain([(end, None)]) {
            let stretch = Stretch { start: from, end: at, awaited };
            if from < at {
                stretches.extend(without_recorded_waits(stretch, recorded, lifetime.cpu.is_some()));
            }
            from = at;
        }
    }
    stretches
}

/// Returns the part of a stretch in which the thread may have waited in addition to its recorded
/// waits. The rest of the stretch is work.
/// - After a vfork, it is the whole stretch. A recorded wait that begins just before the end of
///   such a stretch is a later one: the child's instants are those of its tracer.
/// - Without recorded waits, it is the whole stretch, too. Waits for a CPU do not count, because
///   they say nothing about the remaining time.
/// - If a child ends the stretch and the CPU time is known, it is what follows the last recorded
///   wait. For example, the exec of the child ended a read, and the thread waited again.
/// - Otherwise, there is none.
fn without_recorded_waits(stretch: Stretch, recorded: &[Wait], knows_cpu: bool) -> Option<Stretch> {
    if stretch.awaited.is_some_and(|awaited| awaited.is_certain) {
        return Some(stretch);
    }
    let first = recorded.partition_point(|wait| wait.to <= stretch.start);
    let within = recorded[first..].iter().take_while(|wait| wait.from < stretch.end);
    let Some(last) = within.filter(|wait| wait.reason == LeftCpu::Interruptible).last() else {
        return Some(stretch);
    };
    let rest = Stretch { start: last.to, ..stretch };
    (knows_cpu && stretch.awaited.is_some() && rest.start < rest.end).then_some(rest)
}

/// Distributes the time in which the thread used no CPU over the stretches, as waits.
fn waits_within(
    timelines: &Timelines,
    lifetime: &Lifetime,
    stretches: &[Stretch],
    recorded: &[Wait],
    unknown: &mut Vec<UnknownWait>,
) -> Vec<Wait> {
    let shares = Shares::new(lifetime, stretches, recorded);
    let mut waits = Vec::new();
    for stretch in stretches {
        let span = (stretch.span() as f64 * shares.for_stretch(stretch)) as u64;
        if span < MIN_SPAN.0 {
            continue;
        }
        let awaited = stretch.awaited.filter(|awaited| is_created(timelines, awaited.thread));
        if !awaited.is_some_and(|awaited| awaited.is_certain) {
            unknown.push(UnknownWait {
                launch: lifetime.launch,
                span: Nanos(span),
                end: [Nanos(stretch.start.0 + span), stretch.end],
                supposed: awaited.map(|awaited| timelines.launch_of(awaited.thread)),
            });
        }
        let (from, to) = stretch.wait_interval(span);
        waits.push(Wait {
            from,
            woken: to,
            to,
            reason: LeftCpu::Interruptible,
            syscall: None,
            waker: awaited.map(|awaited| WakerRow::Task(awaited.task)),
            object: None,
            calls: None,
        });
    }
    waits
}

/// The share of a stretch in which the thread waited.
struct Shares {
    /// For stretches that a child's event ended, if the thread need not have waited for the child.
    for_children: f64,
    /// For stretches that no child's event ended.
    other: f64,
}

impl Shares {
    fn new(lifetime: &Lifetime, stretches: &[Stretch], recorded: &[Wait]) -> Shares {
        let (mut certain, mut supposed, mut other) = (0, 0, 0);
        for stretch in stretches {
            match stretch.awaited.map(|awaited| awaited.is_certain) {
                Some(true) => certain += stretch.span(),
                Some(false) => supposed += stretch.span(),
                None => other += stretch.span(),
            }
        }
        let recorded_ns: u64 = recorded.iter().map(|wait| lifetime.span_in_runs(wait)).sum();
        let wall: u64 = lifetime.runs.iter().map(|(start, end)| end.since(*start).0).sum();
        // If the CPU time is unknown, a parent is assumed to wait whenever it can. But an imported
        // log of system calls has all waits of the thread, so the remaining time is work.
        let has_calls = recorded.iter().any(|wait| wait.syscall.is_some());
        let assumed = if has_calls { 0 } else { supposed };
        let idle = lifetime.cpu.map_or(assumed, |cpu| wall.saturating_sub(cpu.0 + recorded_ns + certain));
        let for_children = idle.min(supposed);
        Shares {
            for_children: for_children as f64 / supposed.max(1) as f64,
            other: (idle - for_children).min(other) as f64 / other.max(1) as f64,
        }
    }

    fn for_stretch(&self, stretch: &Stretch) -> f64 {
        match stretch.awaited.map(|awaited| awaited.is_certain) {
            Some(true) => 1.0,
            Some(false) => self.for_children,
            None => self.other,
        }
    }
}
