//! Blocked stretches of threads, grouped by launch. Only the grouping: what a wait was for, and whether it mattered,
//! is not decided here.

use std::collections::HashMap;

use super::tree::Forest;
use crate::event::{LeftCpu, Nanos, Pid, TaskId};
use crate::record::reader::{Recording, SliceRow, ThreadRow, WakerRow};

/// An interval in which a thread was off the CPU and could not have gone on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait<'a> {
    /// The thread.
    pub task: TaskId,
    /// It left the CPU.
    pub start: Nanos,
    /// It was back on a CPU; `None` when it never was, or that was not seen.
    pub end: Option<Nanos>,
    /// It could run again.
    pub woken: Option<Nanos>,
    /// How it slept.
    pub reason: LeftCpu,
    /// Number of the system call it sat in.
    pub syscall: Option<u32>,
    /// That call's first argument.
    pub argument: Option<u64>,
    /// Who woke it.
    pub waker: Option<Waker<'a>>,
}

/// Who woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waker<'a> {
    /// A followed thread.
    Task {
        /// The thread.
        task: TaskId,
        /// Index of its launch in the forest.
        launch: Option<usize>,
    },
    /// A thread that is not followed.
    Other {
        /// Its thread id.
        pid: Pid,
        /// Its name.
        name: Option<&'a [u8]>,
    },
    /// An interrupt.
    Interrupt,
}

/// The waits of every launch of a forest.
#[derive(Clone, Debug, Default)]
pub struct Waits<'a> {
    /// Waits by launch, then by time.
    waits: Vec<Wait<'a>>,
    /// Where each launch's waits begin in `waits`; one entry more than launches.
    starts: Vec<usize>,
}

impl<'a> Waits<'a> {
    /// Picks the blocked stretches out of `slices` and groups them.
    #[must_use]
    pub fn group(
        recording: &'a Recording,
        forest: &Forest<'_>,
        threads: &[ThreadRow],
        slices: impl IntoIterator<Item = SliceRow>,
    ) -> Waits<'a> {
        let launch_of = launches_of_tasks(forest, threads);
        let mut found: Vec<(usize, Wait<'a>)> = slices
            .into_iter()
            .filter(|slice| is_blocked(slice.reason))
            .filter_map(|slice| Some((*launch_of.get(&slice.task)?, wait_of(recording, &launch_of, &slice))))
            .collect();
        found.sort_by_key(|(launch, wait)| (*launch, wait.start, wait.task));
        let mut starts = vec![0; forest.launches.len() + 1];
        for (launch, _) in &found {
            starts[launch + 1] += 1;
        }
        for index in 0..forest.launches.len() {
            starts[index + 1] += starts[index];
        }
        Waits {
            waits: found.into_iter().map(|(_, wait)| wait).collect(),
            starts,
        }
    }

    /// The waits of the launch at `index` of the forest, by time.
    #[must_use]
    pub fn of(&self, index: usize) -> &[Wait<'a>] {
        match (self.starts.get(index), self.starts.get(index + 1)) {
            (Some(start), Some(end)) => &self.waits[*start..*end],
            _ => &[],
        }
    }
}

fn launches_of_tasks(forest: &Forest<'_>, threads: &[ThreadRow]) -> HashMap<TaskId, usize> {
    // A process's first thread has the number of its launch.
    let mut launch_of: HashMap<TaskId, usize> = forest
        .launches
        .iter()
        .enumerate()
        .map(|(index, launch)| (TaskId(launch.id.0), index))
        .collect();
    for thread in threads {
        if let Some(index) = launch_of.get(&TaskId(thread.launch.0)).copied() {
            launch_of.insert(thread.task, index);
        }
    }
    launch_of
}

fn is_blocked(reason: LeftCpu) -> bool {
    matches!(
        reason,
        LeftCpu::Interruptible | LeftCpu::Uninterruptible | LeftCpu::Stopped
    )
}

fn wait_of<'a>(recording: &'a Recording, launch_of: &HashMap<TaskId, usize>, slice: &SliceRow) -> Wait<'a> {
    let after = |span: Nanos| Nanos(slice.off.0 + span.0);
    Wait {
        task: slice.task,
        start: slice.off,
        end: slice.off_span.map(after),
        woken: slice.wake_span.map(after),
        reason: slice.reason,
        syscall: slice.syscall,
        argument: slice.argument,
        waker: slice.waker.map(|waker| match waker {
            WakerRow::Task(task) => Waker::Task {
                task,
                launch: launch_of.get(&task).copied(),
            },
            WakerRow::Other(pid, name) => Waker::Other {
                pid,
                name: name.map(|id| recording.texts.get(id)),
            },
            WakerRow::Interrupt => Waker::Interrupt,
        }),
    }
}
