//! Waits for the other end of a pseudo-terminal. A worker of the kernel passes on what was written,
//! and wakes the reader: the programs below `script`, expect, tmux or `ssh -t` would seem to wait
//! for that worker. The wait was for the thread that wrote. A write does not block, so a recording
//! does not show it; but the worker runs at once, so the writer is the thread that was on a CPU
//! last.

use std::collections::BTreeSet;
use std::iter;

use crate::model::timeline::{ThreadIndex, Timelines, beginning, ended_by, woken_at};
use crate::waits::child_waits::is_created;
use foldhash::HashSet;
use spawnscope_data::event::syscalls::numbers;
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::rows::{SliceRow, TextId, WakerRow};

/// What the name of each kernel worker begins with.
pub(super) const WORKER_PREFIX: &[u8] = b"kworker/";
/// Maximum time from a write until the worker wakes the reader. On a busy machine, the worker waits
/// for a CPU for tens of milliseconds.
const MAX_DELAY: Nanos = Nanos(100_000_000);
/// Maximum number of generations between a reader and a writer.
const MAX_GENERATIONS: usize = 16;

/// System calls that read from a terminal, or wait until that is possible.
const READS: [u16; 9] =
    numbers(["read", "readv", "poll", "ppoll", "select", "pselect6", "epoll_wait", "epoll_pwait", "epoll_pwait2"]);

/// A wait that a kernel worker ended.
struct TerminalWait {
    woken: Nanos,
    thread: ThreadIndex,
    index: usize,
    /// The probable writer, and until when it was on a CPU.
    writer: Option<(Relation, Nanos, ThreadIndex)>,
}

/// How a thread is related to a reader, the least probable writer first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    None,
    Ancestor,
    Descendant,
}

/// Rewrites the waits that kernel workers ended as waits for the writer. `workers` contains the
/// names of these workers, `threads` are those with such waits.
pub(super) fn rewrite_waits(timelines: &mut Timelines, threads: &BTreeSet<ThreadIndex>, workers: &HashSet<TextId>) {
    let mut waits = waits_for_workers(timelines, threads, workers);
    find_writers(timelines, &mut waits);
    for wait in waits {
        let slice = timelines.slices(wait.thread).get(wait.index);
        if let Some((slice, (_, until, writer))) = slice.zip(wait.writer)
            && let Some(last) = timelines.slices(writer).last()
        {
            timelines.replace(wait.thread, wait.index, ended_by(&slice, last.task, until));
        }
    }
}

/// Whether a kernel worker ended a wait that may have been for a terminal.
pub(super) fn is_by_worker(slice: &SliceRow, workers: &HashSet<TextId>) -> bool {
    let Some(WakerRow::Other(_, Some(name))) = slice.waker else { return false };
    let is_read = slice.syscall.is_some_and(|call| READS.contains(&call));
    slice.reason == LeftCpu::Interruptible && is_read && workers.contains(&name)
}

/// Returns the waits that a kernel worker ended, by the time of the wake-up.
fn waits_for_workers(
    timelines: &Timelines,
    threads: &BTreeSet<ThreadIndex>,
    workers: &HashSet<TextId>,
) -> Vec<TerminalWait> {
    let mut waits = Vec::new();
    for &thread in threads {
        let slices = timelines.slices(thread).iter().enumerate().filter(|(_, slice)| is_by_worker(slice, workers));
        let waited = slices.filter_map(|(index, slice)| Some((woken_at(&slice)?, index)));
        waits.extend(waited.map(|(woken, index)| TerminalWait { woken, thread, index, writer: None }));
    }
    waits.sort_unstable_by_key(|wait| (wait.woken, wait.thread));
    waits
}

/// Finds the thread that was on a CPU last when each wait ended.
fn find_writers(timelines: &Timelines, waits: &mut [TerminalWait]) {
    if waits.is_empty() {
        return;
    }
    for thread in 0..timelines.threads.len() as ThreadIndex {
        if !is_created(timelines, thread) && timelines.threads[thread as usize].launch != thread {
            continue;
        }
        for slice in timelines.slices(thread).iter().filter(|slice| slice.on_span.is_some_and(|span| span.0 > 0)) {
            let on = beginning(&slice);
            let first = waits.partition_point(|wait| wait.woken < on);
            for wait in waits[first..].iter_mut().take_while(|wait| wait.woken.since(slice.off) <= MAX_DELAY) {
                let until = slice.off.min(wait.woken);
                let relation = relation(timelines, wait.thread, thread);
                let better = wait.writer.is_none_or(|(other, at, _)| (until, relation) > (at, other));
                if thread != wait.thread && relation > Relation::None && better {
                    wait.writer = Some((relation, until, thread));
                }
            }
        }
    }
}

fn relation(timelines: &Timelines, reader: ThreadIndex, other: ThreadIndex) -> Relation {
    let [reader, other] = [reader, other].map(|thread| timelines.launch_of(thread));
    if descends(timelines, other, reader) {
        Relation::Descendant
    } else if descends(timelines, reader, other) {
        Relation::Ancestor
    } else {
        Relation::None
    }
}

fn descends(timelines: &Timelines, launch: u32, ancestor: u32) -> bool {
    let parents = iter::successors(timelines.parent_of(launch), |parent| timelines.parent_of(*parent));
    parents.take(MAX_GENERATIONS).any(|parent| parent == ancestor)
}
