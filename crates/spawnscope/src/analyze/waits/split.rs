//! Divides a wait by what the launch was doing that it was for. The parts sum to the wait exactly.

use std::collections::HashMap;

use crate::analyze::phases::{Phase, Piece, pieces};
use crate::analyze::timeline::Timelines;
use crate::analyze::tree::Forest;
use crate::event::{LeftCpu, Nanos};
use crate::record::reader::SliceRow;

/// Above this, the sums over a thread's slices are kept: many may wait for one launch.
const FEW_SLICES: usize = 64;

/// What a wait consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The launch's phases but `run`, `queue` and `reap`.
    pub tax: Nanos,
    /// Its `run`.
    pub run: Nanos,
    /// It had ended, and who waited did not look.
    pub reap: Nanos,
    /// It or, after its wake-up, who waited could run but had no CPU.
    pub queue: Nanos,
    /// None of these is known to be.
    pub other: Nanos,
}

impl Parts {
    /// The wait.
    #[must_use]
    pub fn total(&self) -> Nanos {
        Nanos(self.tax.0 + self.run.0 + self.reap.0 + self.queue.0 + self.other.0)
    }

    /// Adds those of another wait.
    pub(super) fn add(&mut self, more: &Parts) {
        self.tax.0 += more.tax.0;
        self.run.0 += more.run.0;
        self.reap.0 += more.reap.0;
        self.queue.0 += more.queue.0;
        self.other.0 += more.other.0;
    }
}

/// A wait: the thread left the CPU, could run again, and had one again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) start: Nanos,
    pub(super) woken: Nanos,
    pub(super) end: Nanos,
}

impl Interval {
    /// That of a slice; `None` when its end was not seen. Without a wake-up that was seen, it was blocked to the end.
    pub(super) fn of(slice: &SliceRow) -> Option<Interval> {
        let span = slice.off_span?;
        let woken = slice.wake_span.map_or(span, |woken| woken.min(span));
        Some(Interval {
            start: slice.off,
            woken: Nanos(slice.off.0 + woken.0),
            end: Nanos(slice.off.0 + span.0),
        })
    }

    fn span(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// Divides waits by the launches they were for.
pub(super) struct Splitter<'f, 'a> {
    forest: &'f Forest<'a>,
    timelines: &'f Timelines,
    /// Of the launch asked for last.
    pieces: Option<(usize, Vec<Piece>)>,
    /// For first threads with many slices: the time without a CPU before each slice.
    sums: HashMap<usize, Vec<u64>>,
}

impl<'f, 'a> Splitter<'f, 'a> {
    pub(super) fn new(forest: &'f Forest<'a>, timelines: &'f Timelines) -> Splitter<'f, 'a> {
        Splitter {
            forest,
            timelines,
            pieces: None,
            sums: HashMap::new(),
        }
    }

    /// A wait for something that is no launch.
    pub(super) fn unknown(wait: &Interval) -> Parts {
        let queue = wait.end.since(wait.woken);
        Parts {
            queue,
            other: Nanos(wait.span().0 - queue.0),
            ..Parts::default()
        }
    }

    /// A wait for the launch at `target`.
    pub(super) fn split(&mut self, target: usize, wait: &Interval) -> Parts {
        let (known, pieces) = match self.pieces.take() {
            Some((of, pieces)) if of == target => (of, pieces),
            _ => (target, self.pieces_of(target)),
        };
        let mut parts = Splitter::unknown(wait);
        let begun = pieces.partition_point(|piece| piece.end <= wait.start);
        for piece in pieces[begun..].iter().take_while(|piece| piece.start < wait.woken) {
            let (start, end) = (piece.start.max(wait.start), piece.end.min(wait.woken));
            let span = end.since(start).0;
            let queue = match piece.phase {
                Phase::Queue => span,
                Phase::Reap => 0,
                _ => self.without_cpu(target, start, end).min(span),
            };
            let part = match piece.phase {
                Phase::Run => &mut parts.run,
                Phase::Reap => &mut parts.reap,
                _ => &mut parts.tax,
            };
            part.0 += span - queue;
            parts.queue.0 += queue;
            parts.other.0 -= span;
        }
        self.pieces = Some((known, pieces));
        parts
    }

    fn pieces_of(&self, target: usize) -> Vec<Piece> {
        let launch = &self.forest.launches[target];
        let unfinished = launch.is_unfinished().then_some(self.forest.end);
        pieces(launch.origin, &launch.instants, &launch.execs, unfinished)
    }

    /// Time between two instants in which the launch's first thread could run but had no CPU.
    fn without_cpu(&mut self, target: usize, start: Nanos, end: Nanos) -> u64 {
        let slices = self.timelines.slices(target as u32);
        if slices.len() <= FEW_SLICES {
            let within = |slice| {
                let (from, to) = runnable(slice);
                to.min(end).since(from.max(start)).0
            };
            return slices.iter().map(within).sum();
        }
        let sums = self.sums.entry(target).or_insert_with(|| running_sums(slices));
        let before = |at: Nanos| {
            let begun = slices.partition_point(|slice| slice.off < at);
            let Some(last) = begun.checked_sub(1) else { return 0 };
            let (from, to) = runnable(&slices[last]);
            sums[last] + to.min(at).since(from).0
        };
        before(end).saturating_sub(before(start))
    }
}

fn running_sums(slices: &[SliceRow]) -> Vec<u64> {
    let mut sum = 0;
    let before = |slice| {
        let (from, to) = runnable(slice);
        let before = sum;
        sum += to.since(from).0;
        before
    };
    slices.iter().map(before).collect()
}

/// The part of a slice in which its thread could run but had no CPU.
fn runnable(slice: &SliceRow) -> (Nanos, Nanos) {
    let end = Nanos(slice.off.0 + slice.off_span.unwrap_or_default().0);
    let start = match (slice.reason, slice.wake_span) {
        (LeftCpu::Created | LeftCpu::Preempted, _) => slice.off,
        (_, Some(woken)) => Nanos(slice.off.0 + woken.0),
        (_, None) => end,
    };
    (start, end)
}
