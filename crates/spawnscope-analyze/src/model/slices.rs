//! The slices of a recording, by thread and time. There are several per launch, so they dominate
//! the memory of an analysis. Each slice is packed into 36 bytes; the few that do not fit are
//! stored unpacked.

use std::ops::Range;

use spawnscope_data::event::{LeftCpu, Nanos, Pid, TaskId};
use spawnscope_data::rows::{ObjectRef, SliceRow, TextId, WakerRow};

/// Slices of many threads. System call arguments are kept only for open waits, since only those are
/// used.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    packed: Vec<PackedSlice>,
    /// Slices that do not fit into a `PackedSlice`.
    unpacked: Vec<SliceRow>,
    /// Wakers that are not followed, one for each slice with such a waker.
    others: Vec<(Pid, Option<TextId>)>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, packed(4))]
struct PackedSlice {
    /// Not valid for a slice that is stored unpacked.
    task: u32,
    off: Nanos,
    /// Nanoseconds on the CPU before `off`. `UNKNOWN` if unknown, as for the next two.
    on_span: u32,
    /// Nanoseconds off the CPU after `off`.
    off_span: u32,
    /// Nanoseconds from `off` to the wake-up.
    wake_span: u32,
    /// Depending on `kind`: the waking task, an index in `others`, or an index in `unpacked`.
    waker: u32,
    object: Option<ObjectRef>,
    rest: Rest,
}

/// Several small numbers in one `u32`. From the lowest bit: the kind of the waker, the reason,
/// whether the waker is certain, the system call and the number of system calls.
#[derive(Clone, Copy, Debug)]
struct Rest(u32);

const UNKNOWN: u32 = u32::MAX;
const REASON_BIT: u32 = 3;
const CERTAIN_BIT: u32 = REASON_BIT + 3;
const SYSCALL_BIT: u32 = CERTAIN_BIT + 2;
const CALLS_BIT: u32 = SYSCALL_BIT + 9;
/// The numbers for no system call, and for an unknown number of them.
const NO_SYSCALL: u32 = (1 << (CALLS_BIT - SYSCALL_BIT)) - 1;
const UNCOUNTED: u32 = (1 << (u32::BITS - CALLS_BIT)) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WakerKind {
    NoWaker,
    Task,
    Other,
    Interrupt,
    Unpacked,
}

const WAKER_KINDS: [WakerKind; 8] = {
    let mut kinds = [WakerKind::Unpacked; 8];
    kinds[WakerKind::NoWaker as usize] = WakerKind::NoWaker;
    kinds[WakerKind::Task as usize] = WakerKind::Task;
    kinds[WakerKind::Other as usize] = WakerKind::Other;
    kinds[WakerKind::Interrupt as usize] = WakerKind::Interrupt;
    kinds
};

impl Slices {
    pub fn push(&mut self, row: SliceRow) {
        let packed = self.pack(row);
        self.packed.push(packed);
    }

    pub(crate) fn set(&mut self, index: u32, row: SliceRow) {
        self.packed[index as usize] = self.pack(row);
    }

    fn pack(&mut self, row: SliceRow) -> PackedSlice {
        let packed = self.pack_small(&row).unwrap_or_else(|| {
            self.unpacked.push(row);
            PackedSlice { waker: self.unpacked.len() as u32 - 1, ..PackedSlice::EMPTY }
        });
        PackedSlice { off: row.off, ..packed }
    }

    fn pack_small(&mut self, row: &SliceRow) -> Option<PackedSlice> {
        let packed = PackedSlice::new(row, self.others.len() as u32)?;
        if let Some(WakerRow::Other(pid, name)) = row.waker {
            self.others.push((pid, name));
        }
        Some(packed)
    }

    pub(crate) fn sort(&mut self) {
        self.packed.shrink_to_fit();
        let unpacked = &self.unpacked;
        self.packed.sort_unstable_by_key(|slice| (slice.task(unpacked), slice.off));
    }

    /// Iterates over the threads in order, each with the start and end of its slices.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (TaskId, [u32; 2])> + '_ {
        let mut start = 0;
        let others = &self.unpacked;
        self.packed.chunk_by(move |a, b| a.task(others) == b.task(others)).map(move |run| {
            let end = start + run.len() as u32;
            (run[0].task(others), [std::mem::replace(&mut start, end), end])
        })
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = SliceRow> + '_ {
        (0..self.packed.len() as u32).map(|index| self.get(index))
    }

    // Inlined, so that the values that a caller does not use are not unpacked.
    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> SliceRow {
        let packed = &self.packed[index as usize];
        match packed.kind() {
            WakerKind::Unpacked => self.unpacked[packed.waker as usize],
            _ => packed.row(&self.others),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packed.len()
    }
}

impl PackedSlice {
    const EMPTY: PackedSlice = PackedSlice {
        task: 0,
        off: Nanos(0),
        on_span: UNKNOWN,
        off_span: UNKNOWN,
        wake_span: UNKNOWN,
        waker: 0,
        object: None,
        rest: Rest(WakerKind::Unpacked as u32),
    };

    /// Packs a slice. `None` when it does not fit. A waker that is not followed is stored as
    /// `other_index`.
    fn new(row: &SliceRow, other_index: u32) -> Option<PackedSlice> {
        if row.argument.is_some() && row.is_open_wait() {
            return None;
        }
        let (kind, waker) = match row.waker {
            None => (WakerKind::NoWaker, 0),
            Some(WakerRow::Interrupt) => (WakerKind::Interrupt, 0),
            Some(WakerRow::Task(task)) => (WakerKind::Task, u32::try_from(task.0).ok()?),
            Some(WakerRow::Other(..)) => (WakerKind::Other, other_index),
        };
        Some(PackedSlice {
            task: u32::try_from(row.task.0).ok()?,
            on_span: packed_span(row.on_span)?,
            off_span: packed_span(row.off_span)?,
            wake_span: packed_span(row.wake_span)?,
            waker,
            object: row.object,
            rest: Rest::new(row, kind)?,
            ..PackedSlice::EMPTY
        })
    }

    fn kind(self) -> WakerKind {
        WAKER_KINDS[(self.rest.0 & ((1 << REASON_BIT) - 1)) as usize]
    }

    fn task(self, unpacked: &[SliceRow]) -> TaskId {
        match self.kind() {
            WakerKind::Unpacked => unpacked[self.waker as usize].task,
            _ => TaskId(u64::from(self.task)),
        }
    }

    #[inline(always)]
    fn row(self, others: &[(Pid, Option<TextId>)]) -> SliceRow {
        SliceRow {
            task: TaskId(u64::from(self.task)),
            off: self.off,
            on_span: unpack_span(self.on_span),
            off_span: unpack_span(self.off_span),
            wake_span: unpack_span(self.wake_span),
            reason: self.rest.reason(),
            syscall: self.rest.syscall(),
            argument: None,
            waker: match self.kind() {
                WakerKind::NoWaker | WakerKind::Unpacked => None,
                WakerKind::Interrupt => Some(WakerRow::Interrupt),
                WakerKind::Task => Some(WakerRow::Task(TaskId(u64::from(self.waker)))),
                WakerKind::Other => {
                    let (pid, name) = others[self.waker as usize];
                    Some(WakerRow::Other(pid, name))
                }
            },
            is_waker_certain: self.rest.is_waker_certain(),
            object: self.object,
            calls: self.rest.calls(),
        }
    }
}

impl Rest {
    /// Returns `None` if a number does not fit.
    fn new(row: &SliceRow, kind: WakerKind) -> Option<Rest> {
        let number = |known: Option<u32>, unknown: u32| match known {
            None => Some(unknown),
            Some(number) => (number < unknown).then_some(number),
        };
        let syscall = number(row.syscall.map(u32::from), NO_SYSCALL)?;
        let calls = number(row.calls, UNCOUNTED)?;
        let certain = row.is_waker_certain.map_or(2, u32::from);
        let small = kind as u32 | (row.reason as u32) << REASON_BIT | certain << CERTAIN_BIT;
        Some(Rest(small | syscall << SYSCALL_BIT | calls << CALLS_BIT))
    }

    /// Returns the number from the bit `from` up to the bit `to`.
    fn bits(self, from: u32, to: u32) -> u32 {
        self.0 >> from & ((1 << (to - from)) - 1)
    }

    fn reason(self) -> LeftCpu {
        LeftCpu::ALL[self.bits(REASON_BIT, CERTAIN_BIT) as usize]
    }

    fn is_waker_certain(self) -> Option<bool> {
        let certain = self.bits(CERTAIN_BIT, SYSCALL_BIT);
        (certain < 2).then_some(certain == 1)
    }

    fn syscall(self) -> Option<u16> {
        Some(self.bits(SYSCALL_BIT, CALLS_BIT)).filter(|call| *call != NO_SYSCALL).map(|call| call as u16)
    }

    fn calls(self) -> Option<u32> {
        Some(self.bits(CALLS_BIT, u32::BITS)).filter(|calls| *calls != UNCOUNTED)
    }
}

#[inline]
fn unpack_span(span: u32) -> Option<Nanos> {
    (span != UNKNOWN).then_some(Nanos(u64::from(span)))
}

/// Packs a duration. `None` when it does not fit.
fn packed_span(span: Option<Nanos>) -> Option<u32> {
    match span {
        None => Some(UNKNOWN),
        Some(span) => u32::try_from(span.0).ok().filter(|span| *span != UNKNOWN),
    }
}

/// The slices of one thread, by time.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSlices<'s> {
    slices: &'s Slices,
    start: u32,
    end: u32,
}

impl<'s> ThreadSlices<'s> {
    pub(crate) fn new(slices: &'s Slices, [start, end]: [u32; 2]) -> ThreadSlices<'s> {
        ThreadSlices { slices, start, end }
    }

    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns the indices among the slices of all threads.
    pub(crate) fn indices(self) -> Range<u32> {
        self.start..self.end
    }

    pub fn get(self, index: usize) -> Option<SliceRow> {
        (index < self.len()).then(|| self.slices.get(self.start + index as u32))
    }

    pub fn last(self) -> Option<SliceRow> {
        self.get(self.len().wrapping_sub(1))
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = SliceRow> + use<'s> {
        (self.start..self.end).map(move |index| self.slices.get(index))
    }

    pub fn split_at(self, index: usize) -> (ThreadSlices<'s>, ThreadSlices<'s>) {
        let middle = self.start + index.min(self.len()) as u32;
        (ThreadSlices { end: middle, ..self }, ThreadSlices { start: middle, ..self })
    }

    /// Returns the index of the first slice for which `holds` is false, like `partition_point` of
    /// `[T]`.
    pub fn partition_point(self, holds: impl Fn(&SliceRow) -> bool) -> usize {
        let (mut low, mut high) = (self.start, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(&self.slices.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low - self.start) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spawnscope_data::event::ObjectKind;

    fn slice(task: u64, off: u64) -> SliceRow {
        SliceRow {
            task: TaskId(task),
            off: Nanos(off),
            on_span: Some(Nanos(5)),
            off_span: None,
            wake_span: Some(Nanos(0)),
            reason: LeftCpu::Interruptible,
            syscall: Some(61),
            argument: None,
            waker: Some(WakerRow::Other(Pid(-3), Some(TextId(7)))),
            is_waker_certain: Some(true),
            object: ObjectRef::new(ObjectKind::Pipe, 4),
            calls: Some(9),
        }
    }

    #[test]
    fn packing_a_slice_does_not_change_it() {
        let plain = slice(1, 10);
        let rows = [
            plain,
            SliceRow { on_span: Some(Nanos(u64::from(u32::MAX))), ..slice(1, 11) },
            SliceRow { off_span: Some(Nanos(1 << 40)), ..slice(1, 12) },
            SliceRow { calls: Some(70_000), waker: None, object: None, ..slice(1, 13) },
            SliceRow {
                waker: Some(WakerRow::Task(TaskId(1 << 35))),
                syscall: None,
                calls: Some(65_535),
                ..slice(1, 14)
            },
            SliceRow { waker: Some(WakerRow::Interrupt), is_waker_certain: Some(false), ..slice(1, 15) },
            SliceRow { wake_span: None, calls: None, argument: Some(u64::MAX), ..slice(1, 16) },
        ];
        let mut slices = Slices::default();
        rows.iter().rev().for_each(|row| slices.push(*row));
        slices.sort();
        let all = ThreadSlices::new(&slices, [0, rows.len() as u32]);
        assert_eq!(all.iter().collect::<Vec<_>>(), rows);
        assert_eq!((all.last(), all.get(0), all.get(7)), (Some(rows[6]), Some(plain), None));
    }

    #[test]
    fn threads_are_found_in_order() {
        let mut slices = Slices::default();
        let large = 1 << 40;
        for (task, off) in [(9, 1), (2, 8), (large, 4), (9, 0), (2, 9), (large, 3), (2, 7)] {
            slices.push(slice(task, off));
        }
        slices.sort();
        let runs: Vec<_> = slices.runs().collect();
        assert_eq!(runs, [(TaskId(2), [0, 3]), (TaskId(9), [3, 5]), (TaskId(large), [5, 7])]);
        assert_eq!(slices.get(5), slice(large, 3));
        let of_two = ThreadSlices::new(&slices, [0, 3]);
        assert_eq!(of_two.partition_point(|slice| slice.off < Nanos(9)), 2);
        let (before, after) = of_two.split_at(2);
        assert_eq!((before.len(), after.iter().next().map(|slice| slice.off)), (2, Some(Nanos(9))));
    }

    #[test]
    fn a_packed_slice_is_small() {
        assert_eq!(size_of::<PackedSlice>(), 36);
    }
}
