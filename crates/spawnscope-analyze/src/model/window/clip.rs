//! Cuts rows to a window. The two ends of a window are like those of a recording: processes that
//! started earlier existed before, and processes that end later are still running.

use super::{Window, WindowSpan};
use spawnscope_data::event::{LeftCpu, Nanos, Pid};
use spawnscope_data::rows::{LaunchRow, Origin, Recording, SliceRow, ThreadRow, WakerRow};

pub(super) fn cut_launches(window: &Window, recording: &mut Recording) {
    let WindowSpan { to, .. } = window.span;
    recording.launches.retain(|row| window.members.contains(&row.id));
    for row in &mut recording.launches {
        cut_launch(window, row);
        if let Some(name) = window.names.get(&row.id) {
            row.name = Some(recording.texts.push(name));
        }
    }
    recording.execs.retain(|row| window.members.contains(&row.launch) && row.enter.is_none_or(|enter| enter <= to));
    for row in &mut recording.execs {
        for at in [&mut row.returned, &mut row.load_end] {
            *at = at.filter(|at| *at <= to);
        }
    }
    recording.stops.retain(|row| window.members.contains(&row.launch) && row.at >= window.span.from && row.at < to);
    recording.failed_execs.retain(|row| {
        window.members.contains(&row.launch) && (window.span.from..=to).contains(&row.enter) && row.returned <= to
    });
}

fn cut_launch(window: &Window, row: &mut LaunchRow) {
    let WindowSpan { owner, from, to } = window.span;
    let began = row.created.or(row.create);
    if row.id == owner || began.is_none_or(|began| began < from) {
        row.origin = Origin::Existed;
        row.created = Some(row.created.map_or(from, |created| created.max(from)));
        (row.create, row.first_run, row.prepare, row.parent_tidied) = (None, None, None, None);
        row.parent_task = None;
    }
    row.create = row.create.map(|create| create.max(from));
    if row.id == owner {
        row.parent = None;
    }
    if row.zombie.or(row.exit).is_some_and(|ended| ended > to) {
        (row.zombie, row.wait_status, row.cpu) = (None, None, None);
    }
    for at in [&mut row.exit, &mut row.reaped, &mut row.first_run] {
        *at = at.filter(|at| *at <= to);
    }
}

pub(super) fn cut_threads(window: &Window, mut rows: Vec<ThreadRow>) -> Vec<ThreadRow> {
    let WindowSpan { from, to, .. } = window.span;
    rows.retain(|row| {
        let is_alive = row.created < to && row.ended.is_none_or(|ended| ended > from);
        is_alive && window.members.contains(&row.launch)
    });
    for row in &mut rows {
        if row.created < from {
            (row.created, row.creator) = (from, None);
        }
    }
    rows
}

pub(super) fn cut_slice(window: &Window, mut row: SliceRow) -> Option<SliceRow> {
    let WindowSpan { from, to, .. } = window.span;
    let begins = Nanos(row.off.0.saturating_sub(row.on_span.unwrap_or_default().0));
    let returns_before = row.off_span.is_some_and(|span| row.off.0 + span.0 <= from.0);
    let has_ended_before = row.reason == LeftCpu::Ended && row.off <= from;
    if begins >= to || returns_before || has_ended_before || !window.contains(row.task) {
        return None;
    }
    cut_start(&mut row, begins, from);
    cut_end(&mut row, begins.max(from), to);
    row.waker = row.waker.map(|waker| waker_in_window(window, waker));
    close_if_other_thread(window, &mut row);
    Some(row)
}

/// Cuts the start of a slice. If the thread was off the CPU at the start of the window, moves the
/// instant at which it left the CPU to just after the start, because a replay ignores slices that
/// end at the start.
fn cut_start(row: &mut SliceRow, begins: Nanos, from: Nanos) {
    if row.off > from {
        row.on_span = row.on_span.map(|_| row.off.since(begins.max(from)));
        return;
    }
    let start = Nanos(from.0 + 1);
    let cut = start.since(row.off);
    row.off_span = row.off_span.map(|span| span.since(cut));
    row.wake_span = row.wake_span.map(|span| span.since(cut));
    (row.off, row.on_span) = (start, Some(Nanos(0)));
    if row.reason == LeftCpu::Created {
        row.reason = LeftCpu::Preempted;
    }
}

/// Cuts the end of a slice. A slice that ends after the window becomes open, as at the end of a
/// recording.
fn cut_end(row: &mut SliceRow, begins: Nanos, to: Nanos) {
    if row.off > to {
        row.on_span = Some(to.since(begins));
        (row.off, row.reason) = (to, LeftCpu::Preempted);
        (row.off_span, row.wake_span, row.waker, row.is_waker_certain) = (None, None, None, None);
    }
    if row.off_span.is_some_and(|span| row.off.0 + span.0 > to.0) {
        row.off_span = None;
    }
    if row.wake_span.is_some_and(|span| row.off.0 + span.0 > to.0) {
        (row.wake_span, row.waker, row.is_waker_certain) = (None, None, None);
    }
}

/// Treats a waker of a process outside the window like one of a process that is not recorded.
fn waker_in_window(window: &Window, waker: WakerRow) -> WakerRow {
    match waker {
        WakerRow::Task(task) if !window.contains(task) => {
            let pid = window.pids.get(&window.launch_of(task)).copied();
            WakerRow::Other(pid.unwrap_or(Pid(0)), None)
        }
        waker => waker,
    }
}

/// Closes an open slice of the owner, unless it is the main thread's. The critical path
/// starts at a thread of the owner whose last slice is open, which must be the main thread.
fn close_if_other_thread(window: &Window, row: &mut SliceRow) {
    let is_of_owner = window.launch_of(row.task) == window.span.owner;
    if is_of_owner && row.task != window.main_thread && row.is_open() {
        row.off_span = Some(window.span.to.since(row.off));
    }
}
