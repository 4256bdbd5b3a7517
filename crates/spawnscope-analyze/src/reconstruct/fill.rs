//! Makes the slices of threads whose collector recorded neither CPUs nor wakers, from instants and CPU times. A thread without CPU time must
//! have waited: first for its children, as far as it launched some, then for something unknown. Recorded waits stay as they are.

use std::collections::HashMap;

use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{Origin, SliceRow, ThreadRow, WakerRow};

use super::events::{ChildEvents, What, end_of};
use super::{Wait, slice};
use crate::child_waits::{creator_of, is_created};
use crate::phases::Phase;
use crate::slices::Slices;
use crate::timeline::{ThreadIndex, Timelines};
use crate::tree::Forest;
use crate::unknown_waits::UnknownWait;

/// Shorter waits than this are not distinguished from work.
const MIN_SPAN: Nanos = Nanos(20_000);

/// Makes the slices of all threads. Also returns the waits whose cause is not certain.
pub(super) fn fill(
    forest: &Forest<'_>,
    events: &ChildEvents,
    rows: &[ThreadRow],
    timelines: &Timelines,
) -> (Slices, Vec<UnknownWait>) {
    let rows = rows.iter().filter_map(|row| Some((timelines.thread(row.task)?, row)));
    let rows: HashMap<ThreadIndex, &ThreadRow> = rows.collect();
    let (mut slices, mut unknown) = (Slices::default(), Vec::new());
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let Some(life) = Life::of(forest, timelines, thread, &rows) else {
            continue;
        };
        let mut waits = recorded_waits(timelines, thread);
        let stretches = stretches(forest, events, timelines, &life, &waits);
        waits.extend(waits_within(forest, timelines, &life, &stretches, &waits, &mut unknown));
        waits.sort_by_key(|wait| wait.from);
        life.write(&waits, |row| slices.push(row));
    }
    (slices, unknown)
}

/// The life of a thread.
struct Life {
    thread: ThreadIndex,
    launch: u32,
    task: TaskId,
    created: Nanos,
    first_run: Nanos,
    /// Its end, or that of the recording.
    end: Nanos,
    is_over: bool,
    /// When it ran programs or worked as a fork. Its other phases count as work.
    runs: Vec<(Nanos, Nanos)>,
    /// Its CPU time in `runs`.
    cpu: Option<Nanos>,
}

impl Life {
    fn of(
        forest: &Forest<'_>,
        timelines: &Timelines,
        thread: ThreadIndex,
        rows: &HashMap<ThreadIndex, &ThreadRow>,
    ) -> Option<Life> {
        let Some(launch) = forest.launches.get(thread as usize) else {
            return Life::of_further_thread(forest, timelines, thread, rows);
        };
        let created = launch.instants.created.get()?;
        let first_run = launch.instants.first_run.get().unwrap_or(created).max(created);
        let end = end_of(launch).unwrap_or(forest.end).max(first_run);
        let pieces = launch.pieces(Some(forest.end)).into_iter();
        let runs = pieces.filter(|piece| piece.phase == Phase::Run);
        Some(Life {
            thread,
            launch: thread,
            task: TaskId(launch.id.0),
            created,
            first_run,
            end,
            is_over: !launch.is_unfinished(),
            runs: runs
                .map(|piece| (piece.start.max(first_run), piece.end.min(end)))
                .collect(),
            cpu: launch
                .cpu_phases
                .get(Phase::Run)
                .filter(|_| launch.origin != Origin::Existed),
        })
    }

    fn of_further_thread(
        forest: &Forest<'_>,
        timelines: &Timelines,
        thread: ThreadIndex,
        rows: &HashMap<ThreadIndex, &ThreadRow>,
    ) -> Option<Life> {
        let known = timelines.threads[thread as usize];
        let launch = &forest.launches[known.launch as usize];
        let row = rows.get(&thread)?;
        let of_process = end_of(launch).unwrap_or(forest.end);
        let end = row.ended.unwrap_or(of_process).max(row.created);
        Some(Life {
            thread,
            launch: known.launch,
            task: row.task,
            created: row.created,
            first_run: row.created,
            end,
            is_over: row.ended.is_some() || !launch.is_unfinished(),
            runs: vec![(row.created, end)],
            cpu: row.cpu,
        })
    }

    /// Writes the slices of the thread with its waits, which are in order.
    fn write(&self, waits: &[Wait], mut write: impl FnMut(SliceRow)) {
        let mut on = self.first_run;
        if self.first_run > self.created {
            write(SliceRow {
                on_span: None,
                off_span: Some(self.first_run.since(self.created)),
                ..slice(self.task, self.created, self.created, LeftCpu::Created)
            });
        }
        for wait in waits {
            // Waits of a thread overlap only by the inaccuracy of its instants.
            let from = wait.from.max(on);
            let to = wait.to.min(self.end);
            if from < to {
                let woken = wait.woken.clamp(from, to);
                write(
                    Wait {
                        from,
                        woken,
                        to,
                        ..*wait
                    }
                    .slice(self.task, on),
                );
                on = to;
            }
        }
        let reason = if self.is_over {
            LeftCpu::Ended
        } else {
            LeftCpu::Preempted
        };
        write(slice(self.task, on.min(self.end), self.end, reason));
    }
}

/// A part of the run of a thread between two instants at which it, or one of its children, did something.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    start: Nanos,
    end: Nanos,
    /// The child whose event ended it, and whether the thread must have waited for that.
    awaited: Option<(u32, bool)>,
}

impl Stretch {
    fn span(&self) -> u64 {
        self.end.since(self.start).0
    }

    /// Returns where a wait of this duration is assumed to be. Without an awaited child, the thread is on a CPU at the end: it launches or
    /// reaps there.
    fn place_of(&self, span: u64) -> (Nanos, Nanos) {
        match self.awaited {
            Some(_) => (Nanos(self.end.0 - span.min(self.span())), self.end),
            None => (self.start, Nanos((self.start.0 + span).min(self.end.0 - 1))),
        }
    }
}

/// Returns the waits that the collector recorded.
fn recorded_waits(timelines: &Timelines, thread: ThreadIndex) -> Vec<Wait> {
    let slices = timelines.slices(thread).iter();
    let waits = slices.filter_map(|slice| {
        let to = Nanos(slice.off.0 + slice.off_span?.0);
        let woken = slice.wake_span.map_or(to, |span| Nanos(slice.off.0 + span.0));
        let waker = match slice.waker {
            Some(WakerRow::Task(task)) => Some(task),
            _ => None,
        };
        (slice.reason == LeftCpu::Interruptible).then_some(Wait {
            from: slice.off,
            woken,
            to,
            syscall: slice.syscall,
            waker,
        })
    });
    waits.collect()
}

/// Divides the run of a thread at its launches and at the events of its children. Leaves out what a recorded wait explains.
fn stretches(
    forest: &Forest<'_>,
    events: &ChildEvents,
    timelines: &Timelines,
    life: &Life,
    recorded: &[Wait],
) -> Vec<Stretch> {
    let is_own = |child: u32| creator_of(timelines, child, life.launch) == life.thread;
    let ends = events.of_launch(life.launch).iter();
    let ends = ends.filter(|event| event.what != What::Executed && is_own(event.child));
    let mut points: Vec<(Nanos, Option<(u32, bool)>)> = ends
        .map(|event| (event.at, Some((event.child, event.what == What::Released))))
        .collect();
    let children = forest.children(life.launch as usize).iter();
    let children = children.filter(|child| is_own(**child as u32));
    for child in children {
        let at = &forest.launches[*child].instants;
        points.extend(
            [at.created.get(), at.reaped.get()]
                .into_iter()
                .flatten()
                .map(|at| (at, None)),
        );
    }
    points.sort_unstable();
    let mut stretches = Vec::with_capacity(points.len() + life.runs.len());
    for (start, end) in life.runs.iter().copied() {
        let first = points.partition_point(|(at, _)| *at <= start);
        let mut from = start;
        let within = points[first..].iter().copied().take_while(|(at, _)| *at < end);
        for (at, awaited) in within.chain([(end, None)]) {
            let stretch = Stretch {
                start: from,
                end: at,
                awaited,
            };
            if from < at && !is_explained(&stretch, recorded) {
                stretches.push(stretch);
            }
            from = at;
        }
    }
    stretches
}

/// Whether a recorded wait is within a stretch: then the rest of it is work. After a vfork all of it is a wait; one that begins just before its end
/// is the next one, since the instants of the child are those of its tracer.
fn is_explained(stretch: &Stretch, recorded: &[Wait]) -> bool {
    if matches!(stretch.awaited, Some((_, true))) {
        return false;
    }
    let over = recorded.partition_point(|wait| wait.to <= stretch.start);
    recorded.get(over).is_some_and(|wait| wait.from < stretch.end)
}

/// Distributes the time without CPU over the stretches.
fn waits_within(
    forest: &Forest<'_>,
    timelines: &Timelines,
    life: &Life,
    stretches: &[Stretch],
    recorded: &[Wait],
    unknown: &mut Vec<UnknownWait>,
) -> Vec<Wait> {
    let shares = Shares::of(life, stretches, recorded);
    let mut waits = Vec::new();
    for stretch in stretches {
        let span = (stretch.span() as f64 * shares.of_stretch(stretch)) as u64;
        if span < MIN_SPAN.0 {
            continue;
        }
        let child = stretch.awaited.map(|(child, _)| child);
        let child = child.filter(|child| is_created(timelines, *child));
        let is_certain = matches!(stretch.awaited, Some((_, true))) && child.is_some();
        if !is_certain {
            unknown.push(UnknownWait {
                launch: life.launch,
                span: Nanos(span),
                end: [Nanos(stretch.start.0 + span), stretch.end],
                supposed: child,
            });
        }
        let (from, to) = stretch.place_of(span);
        waits.push(Wait {
            from,
            woken: to,
            to,
            syscall: None,
            waker: child.map(|child| TaskId(forest.launches[child as usize].id.0)),
        });
    }
    waits
}

/// The shares of stretches that a thread waited: of those that a child's event ended, and of all others.
struct Shares {
    for_children: f64,
    other: f64,
}

impl Shares {
    fn of(life: &Life, stretches: &[Stretch], recorded: &[Wait]) -> Shares {
        let sum = |is_counted: fn(&Stretch) -> bool| -> u64 {
            let counted = stretches.iter().filter(|stretch| is_counted(stretch));
            counted.map(Stretch::span).sum()
        };
        let certain = sum(|stretch| matches!(stretch.awaited, Some((_, true))));
        let supposed = sum(|stretch| matches!(stretch.awaited, Some((_, false))));
        let other = sum(|stretch| stretch.awaited.is_none());
        let known: u64 = recorded.iter().map(|wait| wait.to.since(wait.from).0).sum();
        let wall: u64 = life.runs.iter().map(|(start, end)| end.since(*start).0).sum();
        // Without CPU times, a parent is assumed to wait whenever it can.
        let idle = life
            .cpu
            .map_or(supposed, |cpu| wall.saturating_sub(cpu.0 + known + certain));
        let for_children = idle.min(supposed);
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        Shares {
            for_children: share(for_children, supposed),
            other: share((idle - for_children).min(other), other),
        }
    }

    fn of_stretch(&self, stretch: &Stretch) -> f64 {
        match stretch.awaited {
            Some((_, true)) => 1.0,
            Some((_, false)) => self.for_children,
            None => self.other,
        }
    }
}
