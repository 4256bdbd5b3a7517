//! Slices made by hand, and random slices.

use proptest::prelude::*;
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{SliceRow, WakerRow};

/// Returns the slice of a thread that is on a CPU from `on` to `off`, is then blocked for
/// `blocked`, and waits for a CPU for `queued`.
pub(crate) fn slice(
    task: u64,
    on: u64,
    off: u64,
    [blocked, queued]: [u64; 2],
    syscall: u16,
    waker: Option<WakerRow>,
) -> SliceRow {
    SliceRow {
        task: TaskId(task),
        off: Nanos(off),
        on_span: Some(Nanos(off - on)),
        off_span: Some(Nanos(blocked + queued)),
        wake_span: Some(Nanos(blocked)),
        reason: LeftCpu::Interruptible,
        syscall: Some(syscall),
        argument: None,
        waker,
        is_waker_certain: None,
        object: None,
        calls: Some(0),
    }
}

pub(crate) fn created(task: u64, at: u64, queue: u64) -> SliceRow {
    SliceRow {
        on_span: None,
        off_span: Some(Nanos(queue)),
        wake_span: None,
        reason: LeftCpu::Created,
        syscall: None,
        ..slice(task, at, at, [0, 0], 0, None)
    }
}

pub(crate) fn ended(task: u64, on: u64, off: u64) -> SliceRow {
    SliceRow {
        off_span: None,
        wake_span: None,
        reason: LeftCpu::Ended,
        syscall: None,
        ..slice(task, on, off, [0, 0], 0, None)
    }
}

/// Generates slices that may contradict each other, as in a damaged recording.
pub(crate) fn any_slice(wall: u64) -> impl Strategy<Value = SliceRow> {
    let spans = (0..wall, 0..2_000_000u64, 0..2_000_000u64, 0..500_000u64);
    let waker = prop_oneof![
        Just(None),
        (1..5u64).prop_map(|task| Some(WakerRow::Task(TaskId(task)))),
        Just(Some(WakerRow::Interrupt)),
    ];
    let reason = prop_oneof![
        Just(LeftCpu::Created),
        Just(LeftCpu::Preempted),
        Just(LeftCpu::Interruptible),
        Just(LeftCpu::Uninterruptible),
        Just(LeftCpu::Stopped),
        Just(LeftCpu::Ended),
    ];
    let calls = prop_oneof![Just(0u16), Just(61), Just(35), Just(56)];
    let is_open = prop::bool::weighted(0.1);
    let chosen = (1..5u64, spans, waker, reason, calls, is_open);
    chosen.prop_map(|(task, (off, on, blocked, queued), waker, reason, call, is_open)| SliceRow {
        reason,
        off_span: (!is_open).then_some(Nanos(blocked + queued)),
        wake_span: (!is_open || blocked % 2 == 0).then_some(Nanos(blocked)),
        ..slice(task, off.saturating_sub(on), off, [blocked, queued], call, waker)
    })
}
