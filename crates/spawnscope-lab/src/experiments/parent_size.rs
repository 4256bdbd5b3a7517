//! Launch cost by the parent's memory, for each mechanism and kind of pages, and for bash as the
//! parent. The sizes of one kind take turns, because they are compared with each other; the kinds
//! are measured one after the other, so that their parents need memory only then.

use std::path::{Path, PathBuf};

use super::{columns, launches, mechanisms};
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::machine::AvailableMemory;
use crate::measurements::{Measurements, Value};
use crate::outcome::{Outcome, Scale, Unit, key};
use crate::runtimes::{BASH, FILL_MEMORY_FACTOR, RuntimeParent, find_program};
use crate::worker::Worker;
use crate::worker::protocol::{Mechanism, Pages, Setting};

pub(super) const MB: u64 = 1_000_000;
const SIZES_MB: [u64; 9] = [0, 1, 10, 100, 250, 500, 1000, 2000, 4000];
/// Even these small sizes show that the cost of fork depends on the size.
const QUICK_SIZES_MB: [u64; 4] = [0, 16, 32, 64];
/// Sizes of parents with huge pages, enough for a linear fit. A huge page has 2 MiB, so tiny
/// parents have none.
const HUGE_SIZES_MB: [u64; 7] = [10, 16, 32, 64, 100, 1000, 4000];
const MAX_BASH_MB: u64 = 1000;

/// The mechanisms that copy page tables, and one that does not. The kind of pages does not affect
/// other mechanisms.
const PAGE_KIND_MECHANISMS: [Mechanism; 3] = [Mechanism::ForkExit, Mechanism::ForkExec, Mechanism::Vspawn];

struct Series<'p> {
    /// The description of the kind of memory; empty for small pages and for bash.
    memory: &'static str,
    launcher: Launcher<'p>,
    /// What is filled with memory, in words.
    parent_name: &'static str,
    /// The peak memory while a parent is filled, as a multiple of its size.
    fill_factor: u64,
    sizes_mb: Vec<u64>,
}

enum Launcher<'p> {
    Worker(Pages, &'static [Mechanism]),
    Bash(&'p [PathBuf], &'p Path),
}

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [
        key("mechanism", "mechanism", Unit::Text),
        key("memory", "memory", Unit::Text),
        key("parent_bytes", "parent", Unit::Bytes),
    ];
    let mut outcome = Outcome::new("Launches by the parent's memory", columns(keys));
    outcome.draw("parent_bytes", "wall_ns", &["mechanism", "memory"], Scale::Logarithmic);
    let (bash, program) = (BASH.find(), find_program("true"));
    let bash = bash.map(|bash| BASH.prepare(&bash, context.directory())).transpose()?;
    let bash_and_program = bash.as_deref().zip(program.as_deref());
    if bash_and_program.is_none() {
        outcome.note("bash or true not found: bash's curve is skipped");
    }
    let series = series(context, bash_and_program);
    let all: usize = series.iter().map(Series::count_cases).sum();
    let (mut measured, mut done) = (Vec::new(), 0.0);
    for one in &series {
        let share = one.count_cases() as f64 / all as f64;
        measured.extend(one.measure(context, done, share, &mut outcome));
        done += share;
    }
    outcome.add(&measured);
    outcome.fit(MB as f64, "MB");
    outcome.note(
        "huge pages: only forks, which copy page tables, and vspawn for comparison; the other mechanisms share the parent's memory",
    );
    Ok(outcome)
}

/// Returns all series, the most important one first.
fn series<'p>(context: &ExperimentContext<'_>, bash_and_program: Option<(&'p [PathBuf], &'p Path)>) -> Vec<Series<'p>> {
    let listed: &[u64] = context.pick(&SIZES_MB, &QUICK_SIZES_MB);
    let largest = context.max_memory / MB;
    let mut sizes: Vec<u64> = listed.iter().copied().filter(|size| *size <= largest).collect();
    if !context.effort.quick && sizes.last().is_some_and(|last| *last < largest) {
        sizes.push(largest);
    }
    let mut huge_sizes = sizes.clone();
    huge_sizes.retain(|size| HUGE_SIZES_MB.contains(size) || !SIZES_MB.contains(size));
    let bash_sizes = sizes.iter().copied().filter(|size| *size <= MAX_BASH_MB).collect();
    let series =
        |memory, launcher, sizes_mb| Series { memory, launcher, parent_name: "a parent", fill_factor: 1, sizes_mb };
    let bash = bash_and_program.map(|(bash, program)| Series {
        parent_name: "bash",
        fill_factor: FILL_MEMORY_FACTOR,
        ..series("", Launcher::Bash(bash, program), bash_sizes)
    });
    let small = series("", Launcher::Worker(Pages::Small, &mechanisms::COMPARED), sizes);
    let huge = series("huge pages", Launcher::Worker(Pages::Huge, &PAGE_KIND_MECHANISMS), huge_sizes);
    [Some(small), bash, Some(huge)].into_iter().flatten().collect()
}

impl Series<'_> {
    fn count_cases(&self) -> usize {
        let per_size = match self.launcher {
            Launcher::Worker(_, mechanisms) => mechanisms.len(),
            Launcher::Bash(..) => 1,
        };
        self.sizes_mb.len() * per_size
    }

    /// Measures all sizes that fit into memory at the same time, and adds a note on the others.
    /// `done` and `share` are the shares of the experiment that earlier series and this one take.
    fn measure(
        &self,
        context: &ExperimentContext<'_>,
        done: f64,
        share: f64,
        outcome: &mut Outcome,
    ) -> Vec<Measurements> {
        let (mut cases, mut failed) = (Vec::new(), Vec::new());
        let sizes: Vec<u64> = self.sizes_mb.iter().map(|size_mb| size_mb * MB).collect();
        let (fitting, others) = sizes.split_at(count_fitting(&sizes, self.fill_factor, AvailableMemory::now()));
        if !others.is_empty() {
            let skipped: Vec<String> = others.iter().copied().map(spawnscope_data::units::bytes).collect();
            outcome.note(format!("{}: skipped, not enough memory: {}", self.parent_name, skipped.join(", ")));
        }
        for &bytes in fitting {
            let doing = format!("filling {} with {}", self.parent_name, spawnscope_data::units::bytes(bytes));
            let may_continue = || context.report_progress(&doing, done);
            if !may_continue() {
                return failed;
            }
            self.add_cases(context, bytes, &may_continue, (&mut cases, &mut failed));
        }
        let mut measured = context.interleave_part(cases, done, share);
        measured.extend(failed);
        measured
    }

    /// Starts a parent of this size and adds its cases, or its failure.
    fn add_cases(
        &self,
        context: &ExperimentContext<'_>,
        bytes: u64,
        may_continue: &dyn Fn() -> bool,
        (cases, failed): (&mut Vec<Case<'_>>, &mut Vec<Measurements>),
    ) {
        match self.launcher {
            Launcher::Worker(pages, mechanisms) => {
                match Worker::start(&Setting { memory_bytes: bytes, pages, ..Setting::default() }) {
                    Ok(worker) => cases.extend(mechanisms.iter().map(|mechanism| {
                        let program = context.tiny_for(*mechanism);
                        launches(self.keys(mechanism.name(), bytes), &worker, *mechanism, &program)
                    })),
                    Err(error) => failed.push(Measurements::failed(self.keys("", bytes), error)),
                }
            }
            // As in the published measurement, bash has a variable of this many bytes.
            Launcher::Bash(bash, program) => {
                let keys = self.keys("bash runs true", bytes);
                match RuntimeParent::start(bash, BASH.name, bytes, (program, 0), may_continue) {
                    Ok(Some(parent)) => cases.push(Case::new(keys, move |count| Ok(vec![parent.launch(count)?]))),
                    Ok(None) => {}
                    Err(error) => failed.push(Measurements::failed(keys, error)),
                }
            }
        }
    }

    fn keys(&self, name: &str, bytes: u64) -> Vec<Value> {
        vec![Value::from(name), Value::from(self.memory), Value::from(bytes)]
    }
}

/// Returns how many of these ascending sizes, counted from the first, fit into memory together
/// while the largest is filled.
pub(super) fn count_fitting(sizes: &[u64], fill_factor: u64, available: AvailableMemory) -> usize {
    let mut sum = 0u64;
    let fitting = sizes.iter().take_while(|size| {
        let filled = size.saturating_mul(fill_factor);
        let fits = filled <= available.per_process && sum.saturating_add(filled) <= available.total;
        sum = sum.saturating_add(**size);
        fits
    });
    fitting.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fit_while_the_largest_is_filled() {
        let count = |total, per_process| count_fitting(&[0, 10, 100], 2, AvailableMemory { total, per_process });
        assert_eq!(count(210, u64::MAX), 3);
        assert_eq!(count(209, u64::MAX), 2);
        assert_eq!(count(u64::MAX, 199), 2, "one process cannot map it twice");
        assert_eq!(count(0, u64::MAX), 1);
    }
}
