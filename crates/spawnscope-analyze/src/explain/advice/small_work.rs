//! Which launches do less than they cost. Where most launches of one program at one call site do,
//! single ones that took longer do, too, because a busy machine delays them: a cure is for a line,
//! and says how often the line launches.

use std::collections::HashMap;

use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::timeline::Timelines;
use crate::model::tree::Forest;
use crate::predict::whatif::changes::work::work_time;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{Recording, StackId};
use spawnscope_data::statistics::median;

/// A launch whose work takes longer than this many times its cost is not small, whatever its line
/// does.
const MAX_WORK: f64 = 10.0;

/// By how much a tracer may have slowed work that consists of system calls more than launches.
const MAX_SLOWDOWN: f64 = 20.0;

/// For each launch, whether launching the program, including its recorded start-up, takes at least
/// as long as its work. Such launches are worth replacing.
#[derive(Debug)]
pub(crate) struct SmallWork {
    by_time: Vec<bool>,
    by_cpu_time: Vec<bool>,
}

impl SmallWork {
    /// Judges all launches.
    pub(crate) fn of(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> SmallWork {
        // A tracer that slowed launches may have slowed the system calls of the work even more.
        let slowdown = recording.info.slowed_by().map_or(1.0, |_| MAX_SLOWDOWN);
        let lines = lines(forest);
        let judge = |work: &dyn Fn(usize) -> Option<Nanos>| {
            let shares =
                forest.launches.iter().enumerate().map(|(index, launch)| share(launch, work(index)?, slowdown));
            judge_by_line(&lines, &shares.collect::<Vec<_>>())
        };
        let cpu_time = |index: usize| {
            let launch = &forest.launches[index];
            launch.cpu_phases.get(Phase::Run).or(launch.phases.get(Phase::Run))
        };
        SmallWork { by_time: judge(&|index| work_time(forest, timelines, index)), by_cpu_time: judge(&cpu_time) }
    }

    /// Whether the work of a launch is small: its `run` without waits for a CPU.
    pub(super) fn is_mostly_tax(&self, index: usize) -> bool {
        self.by_time[index]
    }

    /// Like `is_mostly_tax`, but compares the CPU time of the run, for a launch that waits for
    /// input from a pipe most of the time.
    pub(super) fn is_mostly_tax_by_cpu_time(&self, index: usize) -> bool {
        self.by_cpu_time[index]
    }
}

/// Returns the work of a launch as a multiple of what the launch costs.
fn share(launch: &Launch<'_>, work: Nanos, slowdown: f64) -> Option<f64> {
    let start_up = launch.start_up.get().unwrap_or_default();
    let cost = launch.launch_cost()?.0 + start_up.0;
    Some(work.since(start_up).0 as f64 / slowdown / cost.max(1) as f64)
}

/// Returns the number of each launch's line.
pub(super) fn lines(forest: &Forest<'_>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    let number_of = |launch| {
        let next = numbers.len() as u32;
        *numbers.entry(line(launch)).or_insert(next)
    };
    forest.launches.iter().map(number_of).collect()
}

/// For each launch, whether its share is at most 1, or that of most launches of its line. Shares
/// are multiples of the most that small work may take.
pub(super) fn judge_by_line(lines: &[u32], shares: &[Option<f64>]) -> Vec<bool> {
    let mut of_lines: Vec<Vec<f64>> = vec![Vec::new(); lines.iter().max().map_or(0, |last| *last as usize + 1)];
    for (line, share) in lines.iter().zip(shares) {
        of_lines[*line as usize].extend(share);
    }
    let medians: Vec<f64> = of_lines.into_iter().map(|shares| median(shares).unwrap_or(f64::MAX)).collect();
    let is_small = |(line, share): (&u32, &Option<f64>)| {
        share.is_some_and(|share| share <= 1.0 || share <= MAX_WORK && medians[*line as usize] <= 1.0)
    };
    lines.iter().zip(shares).map(is_small).collect()
}

/// What launches of one line have in common: their parent's program, their own, and the call site.
fn line<'a>(launch: &Launch<'a>) -> (&'a [u8], &'a [u8], Option<StackId>) {
    (launch.birth_command.name, launch.command.name, launch.script_stack)
}
