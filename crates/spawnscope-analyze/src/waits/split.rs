//! Divides a wait for a launch by what that launch did meanwhile. The parts sum to the wait
//! exactly.

use crate::model::phases::Phase;
use crate::model::pieces::Piece;
use crate::model::timeline::{Timelines, returned_at, woken_at};
use crate::model::tree::Forest;
use foldhash::HashMap;
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::rows::SliceRow;

/// Maximum number of slices of a launch that are summed again for each wait. For more slices,
/// running sums are cached, since many waits may be for that launch.
const MAX_SUMMED: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Time in the launch's phases except `run` and `reap`. This is start-up.
    pub tax: Nanos,
    /// Time in the launch's `run` in which it was on a CPU or waited.
    pub run: Nanos,
    /// The part of `run` in which the launch itself waited, for example for a timer, a child, a
    /// disk or the network. Zero for launches with several threads, since a wait of one thread does
    /// not mean that the launch waits.
    pub run_waiting: Nanos,
    /// Time in the launch's `reap`: the launch had ended, but the waiting process had not reaped
    /// it. This is start-up, too.
    pub reap: Nanos,
    /// Time in the launch's `run` in which it waited for a CPU, and time after the wake-up in which
    /// the waiting thread itself waited for a CPU.
    pub queue: Nanos,
    /// Time that cannot be assigned to another part.
    pub other: Nanos,
}

impl Parts {
    pub fn total(&self) -> Nanos {
        Nanos(self.tax.0 + self.run.0 + self.reap.0 + self.queue.0 + self.other.0)
    }

    pub(super) fn add(&mut self, more: &Parts) {
        self.tax.0 += more.tax.0;
        self.run.0 += more.run.0;
        self.run_waiting.0 += more.run_waiting.0;
        self.reap.0 += more.reap.0;
        self.queue.0 += more.queue.0;
        self.other.0 += more.other.0;
    }
}

/// A wait: when the thread left the CPU, became runnable, and was on a CPU again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) start: Nanos,
    pub(super) woken: Nanos,
    pub(super) end: Nanos,
}

impl Interval {
    /// Returns the wait of a slice. `None` if its end is unknown. If the wake-up is unknown, the
    /// whole wait counts as blocked. A wait that is still open at the end of the recording ends at
    /// `end`.
    pub(super) fn from_slice(slice: &SliceRow, end: Nanos) -> Option<Interval> {
        let span = match slice.off_span {
            None if slice.is_open() => end.since(slice.off),
            span => span?,
        };
        let woken = slice.wake_span.map_or(span, |woken| woken.min(span));
        Some(Interval { start: slice.off, woken: Nanos(slice.off.0 + woken.0), end: Nanos(slice.off.0 + span.0) })
    }

    pub(super) fn span(&self) -> Nanos {
        self.end.since(self.start)
    }
}

/// Divides waits, and caches what several waits for one launch need.
pub(super) struct Splitter<'f, 'a> {
    forest: &'f Forest<'a>,
    timelines: &'f Timelines,
    /// The launch of the last wait that was divided, and its pieces.
    pieces: Option<(usize, Vec<Piece>)>,
    /// Running sums for launches with many slices: how long the first thread was off the CPU, for
    /// one reason, before each slice.
    sums: HashMap<(usize, Off), Vec<u64>>,
}

/// Why a thread is off the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Off {
    Queued,
    Waiting,
}

impl<'f, 'a> Splitter<'f, 'a> {
    pub(super) fn new(forest: &'f Forest<'a>, timelines: &'f Timelines) -> Splitter<'f, 'a> {
        Splitter { forest, timelines, pieces: None, sums: HashMap::default() }
    }

    pub(super) fn without_launch(wait: &Interval) -> Parts {
        let queue = wait.end.since(wait.woken);
        Parts { queue, other: Nanos(wait.span().0 - queue.0), ..Parts::default() }
    }

    pub(super) fn split(&mut self, target: usize, wait: &Interval) -> Parts {
        let (launch, pieces) = match self.pieces.take() {
            Some((launch, pieces)) if launch == target => (launch, pieces),
            _ => (target, self.forest.launches[target].pieces(Some(self.forest.end))),
        };
        let mut parts = Splitter::without_launch(wait);
        let begun = pieces.partition_point(|piece| piece.end <= wait.start);
        for piece in pieces[begun..].iter().take_while(|piece| piece.start < wait.woken) {
            let (start, end) = (piece.start.max(wait.start), piece.end.min(wait.woken));
            let span = end.since(start).0;
            parts.other.0 -= span;
            match piece.phase {
                Phase::Run => {
                    let queue = self.off_cpu(target, Off::Queued, start, end).min(span);
                    let waiting = match self.timelines.multithreaded.contains_key(&(target as u32)) {
                        true => 0,
                        false => self.off_cpu(target, Off::Waiting, start, end).min(span - queue),
                    };
                    parts.queue.0 += queue;
                    parts.run.0 += span - queue;
                    parts.run_waiting.0 += waiting;
                }
                Phase::Reap => parts.reap.0 += span,
                _ => parts.tax.0 += span,
            }
        }
        self.pieces = Some((launch, pieces));
        parts
    }

    /// Returns the time between two instants in which the first thread of the launch was off the
    /// CPU for this reason.
    fn off_cpu(&mut self, target: usize, reason: Off, start: Nanos, end: Nanos) -> u64 {
        let slices = self.timelines.slices(target as u32);
        let last_instant = self.forest.end;
        let stretches = slices.iter().map(|slice| stretch(&slice, reason, last_instant));
        if slices.len() <= MAX_SUMMED {
            return stretches.map(|(from, to)| to.min(end).since(from.max(start)).0).sum();
        }
        let sums = self.sums.entry((target, reason)).or_insert_with(|| running_sums(stretches));
        let before = |at: Nanos| {
            let begun = slices.partition_point(|slice| slice.off < at);
            let Some(last) = begun.checked_sub(1) else { return 0 };
            let Some(slice) = slices.get(last) else { return 0 };
            let (from, to) = stretch(&slice, reason, last_instant);
            sums[last] + to.min(at).since(from).0
        };
        before(end).saturating_sub(before(start))
    }
}

/// Returns the summed length of all earlier stretches, for each stretch.
fn running_sums(stretches: impl Iterator<Item = (Nanos, Nanos)>) -> Vec<u64> {
    let (mut sum, mut sums) = (0, Vec::new());
    for (from, to) in stretches {
        sums.push(sum);
        sum += to.since(from).0;
    }
    sums
}

/// Returns the interval after a slice in which its thread was off the CPU for this reason. A slice
/// that is open at the end of the recording ends at `last_instant`.
fn stretch(slice: &SliceRow, reason: Off, last_instant: Nanos) -> (Nanos, Nanos) {
    let open_end = if slice.is_open() { last_instant } else { slice.off };
    let returned = returned_at(slice).unwrap_or(open_end);
    let woken = match (slice.reason, woken_at(slice)) {
        (LeftCpu::Created | LeftCpu::Preempted, _) => slice.off,
        (_, Some(woken)) => woken.min(returned),
        (_, None) => returned,
    };
    match reason {
        Off::Queued => (woken, returned),
        Off::Waiting => (slice.off, woken),
    }
}
