//! Windows: the activity of one process and its descendants in a span of time, as a recording of
//! its own. This way, the analysis of a recorded command also explains a request to a server, a
//! refresh of an editor, or a build in a recording of the whole machine. `episodes` finds spans
//! with launches, `choice` chooses one, and `clip` cuts rows.

mod choice;
mod clip;
mod episodes;

pub use choice::{Part, WindowError, choose};
pub use episodes::{Episode, episodes};

use crate::model::launch::Launch;
use crate::model::tree::Forest;
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::{LaunchId, Nanos, Pid, TaskId};
use spawnscope_data::rows::{Recording, ThreadRow};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpan {
    /// The process. Its descendants belong to the window, too.
    pub owner: LaunchId,
    pub from: Nanos,
    /// End of the window, after its start.
    pub to: Nanos,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowTitle {
    pub pid: Option<Pid>,
    pub label: Vec<u8>,
    pub from: Nanos,
    pub to: Nanos,
}

/// A window, and the tables for cutting the rows of its recording.
#[derive(Clone, Debug)]
pub struct Window {
    span: WindowSpan,
    title: WindowTitle,
    /// The owner, and its descendants that were alive in the window.
    members: HashSet<LaunchId>,
    /// Names of members that started before the window and have no exec. They are named after their
    /// parents, which may be outside of the window.
    names: HashMap<LaunchId, Vec<u8>>,
    /// The thread of the owner that launched the most, at which the critical path starts.
    main_thread: TaskId,
    /// The launch of each thread that is not the first of its launch.
    launch_of: HashMap<TaskId, LaunchId>,
    /// Pids of processes outside of the window, which may wake threads in it.
    pids: HashMap<LaunchId, Pid>,
}

impl Window {
    /// Prepares a window of a recording. `None` when its owner is not in the recording, or the span
    /// is empty.
    pub fn new(forest: &Forest<'_>, threads: &[ThreadRow], span: WindowSpan) -> Option<Window> {
        let owner = forest.index_of(span.owner).filter(|_| span.from < span.to)?;
        let launches = forest.walk(&[owner]).map(|step| &forest.launches[step.index]);
        let launches: Vec<&Launch<'_>> = launches.filter(|launch| launch.existed_between(span.from, span.to)).collect();
        let members: HashSet<LaunchId> = launches.iter().map(|launch| launch.id).chain([span.owner]).collect();
        let unnamed = launches.iter().filter(|launch| {
            let began = launch.instants.created.get().or(launch.instants.create.get());
            launch.execs.is_empty() && began.is_none_or(|began| began < span.from)
        });
        let outside = forest.launches.iter().filter(|launch| !members.contains(&launch.id));
        let launch = &forest.launches[owner];
        Some(Window {
            title: WindowTitle { pid: launch.pid.get(), label: launch.command.label(), from: span.from, to: span.to },
            names: unnamed.map(|launch| (launch.id, launch.command.label())).collect(),
            main_thread: main_thread(forest, owner, span),
            launch_of: threads.iter().map(|row| (row.task, row.launch)).collect(),
            pids: outside.filter_map(|launch| Some((launch.id, launch.pid.get()?))).collect(),
            members,
            span,
        })
    }

    pub fn title(&self) -> &WindowTitle {
        &self.title
    }

    /// Cuts the rows of a recording to the window. The length of the window becomes the wall, and
    /// the owner becomes the root.
    pub fn cut(&self, recording: &mut Recording) {
        clip::cut_launches(self, recording);
        let WindowSpan { owner, from, to } = self.span;
        recording.info.root = Some(owner);
        recording.info.command.clear();
        recording.info.wall = Some(to.since(from));
        recording.info.last_event = to;
    }

    pub fn cut_threads(&self, rows: Vec<ThreadRow>) -> Vec<ThreadRow> {
        clip::cut_threads(self, rows)
    }

    pub fn cut_slices(&self, slices: &crate::model::slices::Slices) -> crate::model::slices::Slices {
        let mut cut = crate::model::slices::Slices::default();
        slices.rows().filter_map(|row| clip::cut_slice(self, row)).for_each(|row| cut.push(row));
        cut
    }

    fn contains(&self, task: TaskId) -> bool {
        self.members.contains(&self.launch_of(task))
    }

    fn launch_of(&self, task: TaskId) -> LaunchId {
        self.launch_of.get(&task).copied().unwrap_or(LaunchId(task.0))
    }
}

/// Returns the thread of a process that launched the most in a span, or the first thread if the
/// process launched nothing.
fn main_thread(forest: &Forest<'_>, owner: usize, span: WindowSpan) -> TaskId {
    let mut counts: HashMap<TaskId, u64> = HashMap::default();
    for child in forest.children(owner) {
        let child = &forest.launches[*child];
        let is_inside = child.birth().is_some_and(|birth| span.from <= birth && birth < span.to);
        if let Some(creator) = child.parent_task.get().filter(|_| is_inside) {
            *counts.entry(creator).or_default() += 1;
        }
    }
    let largest = counts.into_iter().max_by_key(|(task, count)| (*count, std::cmp::Reverse(*task)));
    largest.map_or(TaskId(span.owner.0), |(task, _)| task)
}
