//! Waits for a scanner's permission: lists them, compares the first exec of a file with its later
//! execs, and counts concurrent waits.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::explain::advice::context::RuleContext;
use crate::model::external_wait::{ExternalWait, external_wait_of};
use crate::model::grouped::grouped;
use spawnscope_data::event::Nanos;
use spawnscope_data::event::syscalls::numbers;
use spawnscope_data::rows::{SliceRow, TextId};
use spawnscope_data::statistics::median;

/// The system calls that execute a program.
const EXECS: [u16; 2] = numbers(["execve", "execveat"]);

/// One wait of a thread for a scanner's permission.
pub(super) struct Wait {
    pub(super) launch: u32,
    pub(super) daemon: Option<TextId>,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Sum of the off-CPU parts of the wait. The moments on a CPU between them do not count.
    pub(super) waited: Nanos,
    pub(super) in_exec: bool,
}

/// Maximum time on a CPU between two parts of one wait. The kernel wakes all waiting threads at
/// each answer, so a thread often runs for a moment and continues to wait for its own answer.
const MAX_WAKE_UP: Nanos = Nanos(10_000);

/// Returns all waits, by thread. Parts of one wait are joined.
pub(super) fn scanner_waits(context: &RuleContext<'_, '_>) -> Vec<Wait> {
    let timelines = context.timelines();
    let mut waits = Vec::new();
    for (thread, each) in (0..).zip(&timelines.threads) {
        let mut current: Option<(Wait, Option<u16>)> = None;
        for slice in timelines.slices(thread).iter() {
            let part = part_of(&slice, each.launch);
            let is_continued = slice.calls == Some(0) && slice.on_span.is_some_and(|on| on < MAX_WAKE_UP);
            match (&mut current, part) {
                (Some((wait, call)), Some(part)) if is_continued && *call == slice.syscall => {
                    wait.waited.0 += part.waited.0;
                    (wait.to, wait.daemon) = (part.to, part.daemon.or(wait.daemon));
                }
                (_, part) => {
                    waits.extend(current.take().map(|(wait, _)| wait));
                    current = part.map(|part| (part, slice.syscall));
                }
            }
        }
        waits.extend(current.map(|(wait, _)| wait));
    }
    waits
}

/// Returns the wait, or the part of a wait, that one slice shows. `None` if the slice shows another
/// kind of wait, or a wait that did not end.
fn part_of(slice: &SliceRow, launch: u32) -> Option<Wait> {
    let ExternalWait::Scanner(daemon) = external_wait_of(slice) else {
        return None;
    };
    let span = slice.wake_span.or(slice.off_span)?;
    Some(Wait {
        launch,
        daemon,
        from: slice.off,
        to: Nanos(slice.off.0 + span.0),
        waited: span,
        in_exec: slice.syscall.is_some_and(|call| EXECS.contains(&call)),
    })
}

/// Returns the files whose execs waited for a scanner, the longest time first: path, waiting time,
/// and number of waits.
pub(super) fn slowest_files<'a>(context: &RuleContext<'_, 'a>, waits: &[Wait]) -> Vec<(&'a [u8], Nanos, u64)> {
    let mut files: HashMap<&[u8], (u64, u64)> = HashMap::new();
    for wait in waits.iter().filter(|wait| wait.in_exec) {
        let mut execs = context.launch(wait.launch).execs.iter();
        let exec = execs.find(|exec| exec.enter.get() <= Some(wait.from) && exec.returned.get() >= Some(wait.to));
        if let Some(exec) = exec {
            let (waited, count) = files.entry(exec.path()).or_default();
            *waited += wait.waited.0;
            *count += 1;
        }
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by_key(|(path, (waited, _))| (Reverse(*waited), *path));
    let files = files.into_iter();
    files.map(|(path, (waited, count))| (path, Nanos(waited), count)).collect()
}

/// Returns the median wait of the first execs of files, and of their later execs. Only for files
/// that were executed more than once and scanned at least once. A scanner that caches its verdicts
/// does not scan again.
pub(super) fn first_and_later_waits(context: &RuleContext<'_, '_>, waits: &[Wait]) -> Option<(Nanos, Nanos)> {
    let by_launch = grouped(waits.iter().filter(|wait| wait.in_exec).map(|wait| (wait.launch, wait)));
    let mut execs: Vec<(Nanos, &[u8], u64)> = Vec::new();
    for (index, launch) in (0..).zip(&context.forest().launches) {
        let launch_waits = by_launch.get(&index).map_or(&[][..], Vec::as_slice);
        for exec in &launch.execs {
            if let Some(returned) = exec.returned.get() {
                // An imported log may say only when an exec returned that waited for nothing.
                let enter = exec.enter.get().unwrap_or(returned);
                let inside = launch_waits.iter().filter(|wait| wait.from >= enter && wait.to <= returned);
                execs.push((enter, exec.path(), inside.map(|wait| wait.waited.0).sum()));
            }
        }
    }
    execs.sort_unstable();
    let mut by_path: HashMap<&[u8], (u64, Vec<f64>)> = HashMap::new();
    for (_, path, waited) in execs {
        by_path.entry(path).and_modify(|(_, later)| later.push(waited as f64)).or_insert((waited, Vec::new()));
    }
    by_path.retain(|_, (first, later)| !later.is_empty() && (*first > 0 || later.iter().any(|waited| *waited > 0.0)));
    let first = median(by_path.values().map(|(first, _)| *first as f64))?;
    let later = median(by_path.into_values().flat_map(|(_, later)| later))?;
    Some((Nanos(first as u64), Nanos(later as u64)))
}

/// Returns the largest number of concurrent waits.
pub(super) fn max_concurrent(waits: &[Wait]) -> usize {
    let mut boundaries: Vec<(Nanos, bool)> =
        waits.iter().flat_map(|wait| [(wait.from, true), (wait.to, false)]).collect();
    // At the same instant, ends sort before starts.
    boundaries.sort_unstable();
    let (mut max, mut current) = (0, 0_usize);
    for (_, begins) in boundaries {
        current = if begins { current + 1 } else { current.saturating_sub(1) };
        max = max.max(current);
    }
    max
}
