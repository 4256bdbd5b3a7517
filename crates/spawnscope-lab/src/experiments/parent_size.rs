//! Launch cost by the parent's memory, for each mechanism and kind of pages, and for bash as the parent.

use std::path::Path;
use std::rc::Rc;

use super::passes::Passes;
use super::{launches, mechanisms, wall_and_call};
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::disk;
use crate::harness::Measurements;
use crate::memory::AvailableMemory;
use crate::outcome::{Outcome, Scale, Unit, Value, key};
use crate::shell::{FILL_MEMORY_FACTOR, ShellParent, find_program};
use crate::worker::protocol::{Pages, Setting};
use crate::worker::{Environment, Mechanism, Worker};

const MB: u64 = 1_000_000;
const SIZES_MB: [u64; 9] = [0, 1, 10, 100, 250, 500, 1000, 2000, 4000];
/// Even these small sizes show that the cost of fork depends on the size.
const QUICK_SIZES_MB: [u64; 4] = [0, 16, 32, 64];
/// Sizes of parents with huge pages, enough for a linear fit. A huge page has 2 MiB, so tiny parents have none.
const HUGE_SIZES_MB: [u64; 7] = [10, 16, 32, 64, 100, 1000, 4000];
/// Sizes of parents with a mapped file, enough for a linear fit.
const FILE_SIZES_MB: [u64; 7] = [1, 10, 16, 32, 64, 100, 1000];
/// The maximum size of bash, which takes long to fill.
const MAX_BASH_MB: u64 = 1000;

/// The mechanisms that copy page tables, and one that does not. The kind of pages does not affect other mechanisms.
const PAGE_KIND_MECHANISMS: [Mechanism; 3] = [Mechanism::ForkExit, Mechanism::ForkExec, Mechanism::Vspawn];

/// Parents of one kind, in several sizes.
struct Series<'p> {
    /// The description of the kind of memory; empty for small pages and for bash.
    memory: &'static str,
    launcher: Launcher<'p>,
    sizes_mb: Vec<u64>,
}

/// The kind of process that launches.
enum Launcher<'p> {
    Worker(Pages, &'static [Mechanism]),
    /// The path of bash, and the path of the program that it launches.
    Bash(&'p Path, &'p Path),
}

impl Launcher<'_> {
    /// Returns the number of cases per size.
    fn cases_per_size(&self) -> usize {
        match self {
            Launcher::Worker(_, mechanisms) => mechanisms.len(),
            Launcher::Bash(..) => 1,
        }
    }

    /// Returns the peak memory while a parent is filled, as a multiple of its size.
    fn fill_factor(&self) -> u64 {
        match self {
            Launcher::Worker(..) => 1,
            Launcher::Bash(..) => FILL_MEMORY_FACTOR,
        }
    }
}

/// Published times: seconds for 1000 runs of /bin/true from bash, by the MB of memory in bash.
const PUBLISHED_SECONDS: [(u64, f64); 7] =
    [(0, 0.57), (1, 0.65), (10, 1.1), (100, 3.2), (250, 12.8), (500, 23.8), (1000, 45.2)];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [
        key("mechanism", "mechanism", Unit::Text),
        key("memory", "memory", Unit::Text),
        key("parent_bytes", "parent", Unit::Bytes),
    ];
    let columns = keys.into_iter().chain(wall_and_call()).collect();
    let mut outcome = Outcome::new("Launches by the parent's memory", columns);
    outcome.draw("parent_bytes", "wall_ns", &["mechanism", "memory"], [Scale::Logarithmic, Scale::Logarithmic]);
    outcome.add_published(
        "bash, published",
        PUBLISHED_SECONDS.iter().map(|(mb, seconds)| ((mb * MB) as f64, seconds * 1e6)),
    );
    let (bash, program) = (find_program("bash"), find_program("true"));
    let bash_and_program = bash.as_deref().zip(program.as_deref());
    if bash_and_program.is_none() {
        outcome.note("bash or true not found: bash's curve is skipped");
    }
    let mut series = series(context, bash_and_program);
    for one in &mut series {
        one.drop_sizes_beyond_disk_space(context.directory(), &mut outcome);
    }
    let measured = measure_in_passes(context, &series, &mut outcome);
    outcome.add(&measured);
    outcome.fit("parent_bytes", MB as f64, "MB");
    outcome.note(format!(
        "huge pages and file pages: only forks, which copy page tables, and vspawn for comparison; the other mechanisms share the \
         parent's memory of any kind. Files have at most {}, since they take as much disk space",
        spawnscope_data::units::bytes(FILE_SIZES_MB[FILE_SIZES_MB.len() - 1] * MB)
    ));
    Ok(outcome)
}

/// Returns all series, the most important one first. If memory is short, earlier series are measured in earlier passes.
fn series<'p>(context: &ExperimentContext<'_>, bash_and_program: Option<(&'p Path, &'p Path)>) -> Vec<Series<'p>> {
    let listed: &[u64] = context.pick(&SIZES_MB, &QUICK_SIZES_MB);
    let largest = context.max_memory / MB;
    let mut sizes: Vec<u64> = listed.iter().copied().filter(|size| *size <= largest).collect();
    if !context.effort.quick && sizes.last().is_some_and(|last| *last < largest) {
        sizes.push(largest);
    }
    let mut huge_sizes = sizes.clone();
    huge_sizes.retain(|size| HUGE_SIZES_MB.contains(size) || !SIZES_MB.contains(size));
    let file_sizes = sizes.iter().copied().filter(|size| FILE_SIZES_MB.contains(size)).collect();
    let bash_sizes = sizes.iter().copied().filter(|size| *size <= MAX_BASH_MB).collect();
    let bash = bash_and_program.map(|(bash, program)| ("", Launcher::Bash(bash, program), bash_sizes));
    let small = ("", Launcher::Worker(Pages::Small, &mechanisms::COMPARED), sizes);
    let huge = ("huge pages", Launcher::Worker(Pages::Huge, &PAGE_KIND_MECHANISMS), huge_sizes);
    let file = ("a file's", Launcher::Worker(Pages::File, &PAGE_KIND_MECHANISMS), file_sizes);
    let series = [Some(small), bash, Some(huge), Some(file)].into_iter().flatten();
    series.map(|(memory, launcher, sizes_mb)| Series { memory, launcher, sizes_mb }).collect()
}

/// Measures all series, in as many passes as memory requires.
fn measure_in_passes(
    context: &ExperimentContext<'_>,
    series: &[Series<'_>],
    outcome: &mut Outcome,
) -> Vec<Measurements> {
    let parents = series.iter().map(|one| (one.sizes(), one.launcher.fill_factor()));
    let mut passes = Passes::new(parents.collect());
    let all = count_cases(series, &series.iter().map(Series::sizes).collect::<Vec<_>>());
    let (mut measured, mut done, mut count) = (Vec::new(), 0.0, 0);
    // The parents of the previous pass have ended, so their memory is free again.
    while let Some(pass) = passes.next(AvailableMemory::now()) {
        let Some((cases, failed)) = start_pass(context, series, &pass, done) else {
            break;
        };
        let share = count_cases(series, &pass) as f64 / all as f64;
        measured.extend(context.interleave_part(cases, done, share));
        measured.extend(failed);
        done += share;
        count += 1;
    }
    if count > 1 {
        outcome.note(format!(
            "not all parents fit into memory at once: they were measured in {count} passes, and series were kept whole if \
             possible"
        ));
    }
    let left_out: Vec<String> = passes.left_out().into_iter().map(spawnscope_data::units::bytes).collect();
    if !left_out.is_empty() {
        outcome.note(format!("skipped, not enough memory: {}", left_out.join(", ")));
    }
    measured
}

fn count_cases(series: &[Series<'_>], sizes: &[Vec<u64>]) -> usize {
    sizes.iter().zip(series).map(|(sizes, one)| sizes.len() * one.launcher.cases_per_size()).sum()
}

/// Starts the parents of a pass. Returns their cases, and the cases whose parent could not be started; `None` if the run must stop. `done`
/// is the share of earlier passes.
fn start_pass<'a>(
    context: &ExperimentContext<'_>,
    series: &'a [Series<'_>],
    pass: &[Vec<u64>],
    done: f64,
) -> Option<(Vec<Case<'a>>, Vec<Measurements>)> {
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (one, sizes) in series.iter().zip(pass) {
        for &bytes in sizes {
            let doing = format!("filling {} with {}", one.parent_name(), spawnscope_data::units::bytes(bytes));
            let may_continue = || context.report_progress(&doing, done);
            if !may_continue() {
                return None;
            }
            one.add_cases(context, bytes, &may_continue, (&mut cases, &mut failed));
        }
    }
    Some((cases, failed))
}

impl Series<'_> {
    /// Drops sizes whose files would take too much of the free space, and adds a note. The files of all sizes exist at the same time.
    fn drop_sizes_beyond_disk_space(&mut self, directory: &Path, outcome: &mut Outcome) {
        if !matches!(self.launcher, Launcher::Worker(Pages::File, _)) {
            return;
        }
        let sizes: Vec<u64> = self.sizes_mb.iter().map(|size_mb| size_mb * MB).collect();
        let left_out = sizes[disk::count_fitting(&sizes, disk::usable_bytes(directory))..].iter();
        let left_out: Vec<String> = left_out.copied().map(spawnscope_data::units::bytes).collect();
        self.sizes_mb.truncate(sizes.len() - left_out.len());
        if !left_out.is_empty() {
            outcome.note(format!(
                "{}: {} skipped, because the disk of the temporary directory is too small; set TMPDIR to use another",
                self.memory,
                left_out.join(", ")
            ));
        }
    }

    /// Returns what is filled with memory, in words.
    fn parent_name(&self) -> &'static str {
        match self.launcher {
            Launcher::Worker(..) => "a parent",
            Launcher::Bash(..) => "bash",
        }
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
            Launcher::Worker(pages, mechanisms) => match start_worker(context, bytes, pages) {
                Ok(worker) => cases.extend(mechanisms.iter().map(|mechanism| {
                    let program = context.tiny_for(*mechanism);
                    launches(self.keys(mechanism.name(), bytes), &worker, *mechanism, &program)
                })),
                Err(error) => failed.push(Measurements::failed(self.keys("", bytes), error)),
            },
            // As in the published measurement, bash has a variable of this many bytes.
            Launcher::Bash(bash, program) => {
                let keys = self.keys("bash runs true", bytes);
                match ShellParent::start(bash, bytes, program, may_continue) {
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

    fn sizes(&self) -> Vec<u64> {
        self.sizes_mb.iter().map(|size_mb| size_mb * MB).collect()
    }
}

fn start_worker(context: &ExperimentContext<'_>, memory_bytes: u64, pages: Pages) -> Result<Rc<Worker>, LabError> {
    let setting = Setting { memory_bytes, pages, ..Setting::default() };
    // With this TMPDIR, the file is on the file system of the lab's directory.
    let environment = match pages {
        Pages::File => Environment::default().with("TMPDIR", context.directory()),
        Pages::Small | Pages::Huge => Environment::default(),
    };
    Worker::start_with(&setting, environment).map(Rc::new)
}
