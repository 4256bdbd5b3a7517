//! The shell forks around a launch: the fork that writes its input to a pipe, and the subshell that
//! only runs it. Also finds whether the shell reads its output. `x=$(echo "$y" | sed s/a/b/)`
//! consists of three launches, which are all unnecessary if the shell does the work itself.

use crate::model::launch::Launch;
use crate::model::timeline::{ThreadIndex, Timelines};
use crate::model::tree::Forest;
use foldhash::HashSet;
use spawnscope_data::event::syscalls::numbers;
use spawnscope_data::rows::Origin;

/// System calls with which a shell reads the output of `$( )`.
const READS: [u16; 3] = numbers(["read", "pread64", "readv"]);

/// Maximum number of reads of a parent during a launch that are examined.
const MAX_READS: usize = 16;

/// A launch and the forks that exist only for it.
#[derive(Clone, Debug)]
pub(crate) struct PipelineUnit {
    /// The launches that are unnecessary, with all their descendants, if the shell does this
    /// launch's work.
    pub(crate) unit: Vec<u32>,
    /// Forks of the shell in `unit`: the feeder, and the subshell.
    pub(crate) forks: Vec<u32>,
    /// Whether a fork of the shell writes the standard input of the launch.
    pub(crate) is_fed: bool,
    /// Whether the shell reads the output of the launch.
    pub(crate) is_captured: bool,
}

impl PipelineUnit {
    /// Finds the forks around the launch at `position` among the children of one process.
    pub(crate) fn of(forest: &Forest<'_>, timelines: &Timelines, siblings: &[usize], position: usize) -> PipelineUnit {
        let launch = siblings[position];
        let parent = forest.parent(launch).filter(|parent| forest.launches[*parent].is_fork_without_exec());
        // In a subshell with just these two children, the fork can only be the feeder.
        let is_alone = parent.is_some() && siblings.len() == 2;
        let previous = position.checked_sub(1).map(|before| siblings[before]);
        let feeder = previous
            .filter(|before| is_bare_fork(forest, *before))
            .filter(|before| is_alone || overlap(forest, *before, launch));
        let mut unit: Vec<u32> = feeder.into_iter().chain([launch]).map(|index| index as u32).collect();
        // A subshell that reads the launch's output does not only run the launch.
        let is_read_directly = is_captured(forest, timelines, launch as u32);
        let subshell = parent.filter(|_| siblings.len() == unit.len() && !is_read_directly);
        if let Some(subshell) = subshell {
            unit = vec![subshell as u32];
        }
        // A subshell that runs a pipeline, which the launch ends.
        let is_end = position + 1 == siblings.len() && previous.is_some_and(|before| overlap(forest, before, launch));
        let pipeline = parent.filter(|_| is_end);
        PipelineUnit {
            unit,
            forks: feeder.into_iter().chain(subshell).map(|index| index as u32).collect(),
            is_fed: feeder.is_some(),
            is_captured: is_read_directly
                || subshell.or(pipeline).is_some_and(|subshell| is_captured(forest, timelines, subshell as u32)),
        }
    }
}

/// Whether a launch is a fork that neither executed a program nor launched another process.
pub(crate) fn is_bare_fork(forest: &Forest<'_>, index: usize) -> bool {
    let launch = &forest.launches[index];
    launch.origin == Origin::Launched && launch.execs.is_empty() && forest.children(index).is_empty()
}

/// Whether `second` was created before the older launch, `first`, had ended.
pub(crate) fn overlap(forest: &Forest<'_>, first: usize, second: usize) -> bool {
    let ended = forest.launches[first].end();
    let began = forest.launches[second].instants.created.get();
    ended.zip(began).is_some_and(|(ended, began)| began < ended)
}

/// Returns the sibling before a launch that may write its input, because both ran at the same time.
pub(crate) fn writer_of(forest: &Forest<'_>, index: u32) -> Option<usize> {
    let (siblings, at) = forest.siblings(index as usize)?;
    siblings.get(at.checked_sub(1)?).copied().filter(|before| overlap(forest, *before, index as usize))
}

/// Whether the parent reads the output of a launch while the launch runs, as a shell does for `$(
/// )`. If the launch ended before the parent read, or closed its output before it ended and the
/// collector has only seen what its parent did then, no such wait was recorded. The launches of the
/// same program from the same line then tell.
pub(crate) fn is_captured(forest: &Forest<'_>, timelines: &Timelines, launch: u32) -> bool {
    let find = || {
        let are_read = launches_that_are_read(forest, timelines);
        let line = |index: usize| {
            let launch = &forest.launches[index];
            Some((forest.parent(index)?, launch.script_stack?, launch.command.name))
        };
        let lines: HashSet<_> = (0..are_read.len()).filter(|index| are_read[*index]).filter_map(line).collect();
        (0..are_read.len()).map(|index| are_read[index] || line(index).is_some_and(|it| lines.contains(&it))).collect()
    };
    timelines.reads.get_or_init(find)[launch as usize]
}

fn launches_that_are_read(forest: &Forest<'_>, timelines: &Timelines) -> Vec<bool> {
    let reads_of = |thread: ThreadIndex| {
        let slices = timelines.slices(thread).iter();
        let reads = slices.filter(|slice| slice.syscall.is_some_and(|call| READS.contains(&call)));
        reads.map(move |slice| (thread, slice.off, timelines.waker(&slice)))
    };
    let reads: Vec<_> = (0..timelines.threads.len() as ThreadIndex).flat_map(reads_of).collect();
    let is_read = |(index, launch): (usize, &Launch<'_>)| {
        let (created, ended) = launch.instants.created.get().zip(launch.end())?;
        let parent = forest.parent(index)? as ThreadIndex;
        let creator = timelines.threads[index].creator.get().unwrap_or(parent);
        let first = reads.partition_point(|(thread, off, _)| (*thread, *off) < (creator, created));
        let meanwhile = reads[first..].iter().take_while(|(thread, off, _)| *thread == creator && *off < ended);
        let mut writers =
            meanwhile.take(MAX_READS).map(|(.., waker)| waker.map(|waker| timelines.threads[waker as usize]));
        writers.find(|writer| writer.is_none_or(|writer| is_of_same_line(forest, index, writer.launch as usize)))
    };
    forest.launches.iter().enumerate().map(|launch| is_read(launch).is_some()).collect()
}

/// Whether what ended a read is a launch, a descendant of it, or of another stage of its pipeline.
/// make -j reads the answer of one command while it runs others.
fn is_of_same_line(forest: &Forest<'_>, index: usize, writer: usize) -> bool {
    let parent = forest.parent(index);
    let mut above = std::iter::successors(Some(writer), |launch| forest.parent(*launch));
    let sibling = above.find(|launch| forest.parent(*launch) == parent);
    let stack = |launch: usize| forest.launches[launch].script_stack;
    sibling.is_none_or(|sibling| sibling == index || stack(sibling) == stack(index))
}
