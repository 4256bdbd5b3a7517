//! Stories 2 and 3: launch cost by the parent's memory, by mechanism and kind of page, and the same for bash.

use std::path::Path;
use std::rc::Rc;

use super::passes::Passes;
use super::{launches, mechanisms, wall_and_call};
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::disk;
use crate::harness::Measured;
use crate::memory::Room;
use crate::outcome::{Outcome, Scale, Unit, Value, key};
use crate::shell::{ShellParent, TAKEN_TO_FILL, find};
use crate::worker::protocol::{Pages, Setting};
use crate::worker::{Environment, Mechanism, Worker};

const MB: u64 = 1_000_000;
const SIZES_MB: [u64; 9] = [0, 1, 10, 100, 250, 500, 1000, 2000, 4000];
/// The smallest sizes that show that fork depends on the size.
const QUICK_SIZES_MB: [u64; 4] = [0, 16, 32, 64];
/// Sizes for other kinds of memory, enough for a linear fit. Transparent huge pages have 2 MiB, so smaller parents have none.
const HUGE_MB: [u64; 7] = [10, 16, 32, 64, 100, 1000, 4000];
const FILE_MB: [u64; 7] = [1, 10, 16, 32, 64, 100, 1000];
const MAX_MB_OF_BASH: u64 = 1000;

/// The mechanisms that copy page tables, and one that does not. The kind of page does not affect the others.
const BY_PAGES: [Mechanism; 3] = [Mechanism::ForkExit, Mechanism::ForkExec, Mechanism::Vspawn];

/// Parents of one kind, in several sizes.
struct Series<'p> {
    /// The description of the kind.
    memory: &'static str,
    launcher: Launcher<'p>,
    sizes_mb: Vec<u64>,
}

/// The process that launches.
enum Launcher<'p> {
    Worker(Pages, &'static [Mechanism]),
    /// The paths of bash and of the program it runs.
    Bash(&'p Path, &'p Path),
}

impl Launcher<'_> {
    /// The number of cases per size.
    fn cases(&self) -> usize {
        match self {
            Launcher::Worker(_, mechanisms) => mechanisms.len(),
            Launcher::Bash(..) => 1,
        }
    }

    /// The peak memory while a parent is filled, as a multiple of its size.
    fn to_fill(&self) -> u64 {
        match self {
            Launcher::Worker(..) => 1,
            Launcher::Bash(..) => TAKEN_TO_FILL,
        }
    }
}

/// Story 2: seconds for 1000 runs of /bin/true from bash, by MB of memory in bash.
const STORY: [(u64, f64); 7] = [
    (0, 0.57),
    (1, 0.65),
    (10, 1.1),
    (100, 3.2),
    (250, 12.8),
    (500, 23.8),
    (1000, 45.2),
];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [
        key("mechanism", "mechanism", Unit::Text),
        key("memory", "memory", Unit::Text),
        key("parent_bytes", "parent", Unit::Bytes),
    ];
    let columns = keys.into_iter().chain(wall_and_call()).collect();
    let mut outcome = Outcome::new("Launches by the parent's memory", columns);
    outcome.draw(
        "parent_bytes",
        "wall_ns",
        &["mechanism", "memory"],
        [Scale::Logarithmic, Scale::Logarithmic],
    );
    outcome.published(
        "bash, published",
        STORY.iter().map(|(mb, seconds)| ((mb * MB) as f64, seconds * 1e6)),
    );
    let (bash, program) = (find("bash"), find("true"));
    let in_bash = bash.as_deref().zip(program.as_deref());
    if in_bash.is_none() {
        outcome.note("bash or true not found: bash's curve is skipped");
    }
    let mut series = series(context, in_bash);
    for of in &mut series {
        of.leave_room_on_the_disk(context.directory(), &mut outcome);
    }
    let measured = in_passes(context, &series, &mut outcome);
    outcome.add(&measured);
    outcome.fit("parent_bytes", MB as f64, "MB");
    outcome.note(format!(
        "huge pages and file pages: only forks, which copy page tables, and vspawn for comparison; the other mechanisms share the \
         parent's memory of any kind. Files have at most {}, since they take as much disk space",
        spawnscope_data::units::bytes(FILE_MB[FILE_MB.len() - 1] * MB)
    ));
    Ok(outcome)
}

/// All series, the most important first: if memory is short, series that come first are measured together first.
fn series<'p>(context: &ExperimentContext<'_>, in_bash: Option<(&'p Path, &'p Path)>) -> Vec<Series<'p>> {
    let listed: &[u64] = context.pick(&SIZES_MB, &QUICK_SIZES_MB);
    let largest = context.max_memory / MB;
    let mut sizes: Vec<u64> = listed.iter().copied().filter(|size| *size <= largest).collect();
    if !context.effort.quick && sizes.last().is_some_and(|last| *last < largest) {
        sizes.push(largest);
    }
    let those = |is_wanted: &dyn Fn(u64) -> bool| sizes.iter().copied().filter(|size| is_wanted(*size)).collect();
    let of_workers = |memory, pages, mechanisms, sizes_mb| Series {
        memory,
        launcher: Launcher::Worker(pages, mechanisms),
        sizes_mb,
    };
    let is_huge = |size| HUGE_MB.contains(&size) || !SIZES_MB.contains(&size);
    let of_bash = in_bash.map(|(bash, program)| Series {
        memory: "",
        launcher: Launcher::Bash(bash, program),
        sizes_mb: those(&|size| size <= MAX_MB_OF_BASH),
    });
    [of_workers("", Pages::Small, &mechanisms::ALL, sizes.clone())]
        .into_iter()
        .chain(of_bash)
        .chain([
            of_workers("huge pages", Pages::Huge, &BY_PAGES, those(&is_huge)),
            of_workers(
                "a file's",
                Pages::File,
                &BY_PAGES,
                those(&|size| FILE_MB.contains(&size)),
            ),
        ])
        .collect()
}

/// Measures all series, in as many passes as memory requires.
fn in_passes(context: &ExperimentContext<'_>, series: &[Series<'_>], outcome: &mut Outcome) -> Vec<Measured> {
    let sizes = |of: &Series<'_>| of.sizes_mb.iter().map(|size_mb| size_mb * MB).collect();
    let waiting = series.iter().map(|of| (sizes(of), of.launcher.to_fill()));
    let mut passes = Passes::of(waiting.collect());
    let weight = |sizes: &[Vec<u64>]| {
        let of_each = sizes
            .iter()
            .zip(series)
            .map(|(sizes, of)| sizes.len() * of.launcher.cases());
        of_each.sum::<usize>() as f64
    };
    let all = weight(&series.iter().map(sizes).collect::<Vec<_>>());
    let (mut measured, mut done, mut count) = (Vec::new(), 0.0, 0);
    // The parents of the previous pass have ended, so their memory is free again.
    while let Some(pass) = passes.next(Room::here()) {
        let Some((cases, failed)) = filled(context, series, &pass, done) else {
            break;
        };
        let share = weight(&pass) / all;
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
    let left_out: Vec<String> = passes
        .left_out()
        .into_iter()
        .map(spawnscope_data::units::bytes)
        .collect();
    if !left_out.is_empty() {
        outcome.note(format!("skipped, not enough memory: {}", left_out.join(", ")));
    }
    measured
}

/// The cases of a pass, and those that could not be started; `None`: stop. `done` is the share of earlier passes.
fn filled<'a>(
    context: &ExperimentContext<'_>,
    series: &'a [Series<'_>],
    pass: &[Vec<u64>],
    done: f64,
) -> Option<(Vec<Case<'a>>, Vec<Measured>)> {
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (of, sizes) in series.iter().zip(pass) {
        for &bytes in sizes {
            let doing = format!("filling {} with {}", of.who(), spawnscope_data::units::bytes(bytes));
            let may_continue = || context.may_continue(&doing, done);
            if !may_continue() {
                return None;
            }
            of.add(context, bytes, &may_continue, (&mut cases, &mut failed));
        }
    }
    Some((cases, failed))
}

impl Series<'_> {
    /// The files of all sizes exist at the same time. Drops the sizes that would exceed a share of the free space, with a note.
    fn leave_room_on_the_disk(&mut self, directory: &Path, outcome: &mut Outcome) {
        if !matches!(self.launcher, Launcher::Worker(Pages::File, _)) {
            return;
        }
        let sizes: Vec<u64> = self.sizes_mb.iter().map(|size_mb| size_mb * MB).collect();
        let left_out = sizes[disk::fitting(&sizes, disk::room(directory))..].iter();
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

    /// What is being filled, in words.
    fn who(&self) -> &'static str {
        match self.launcher {
            Launcher::Worker(..) => "a parent",
            Launcher::Bash(..) => "bash",
        }
    }

    /// Starts a parent of this size and adds its cases, or its failure.
    fn add(
        &self,
        context: &ExperimentContext<'_>,
        bytes: u64,
        may_continue: &dyn Fn() -> bool,
        (cases, failed): (&mut Vec<Case<'_>>, &mut Vec<Measured>),
    ) {
        let keys = |name: &str| vec![Value::from(name), Value::from(self.memory), Value::from(bytes)];
        match self.launcher {
            Launcher::Worker(pages, mechanisms) => match worker(context, bytes, pages) {
                Ok(worker) => cases.extend(mechanisms.iter().map(|mechanism| {
                    let program = context.tiny_for(*mechanism);
                    launches(keys(mechanism.name()), &worker, *mechanism, &program)
                })),
                Err(error) => failed.push(Measured::failed(keys(""), error)),
            },
            // As in the story: a variable of this many bytes.
            Launcher::Bash(bash, program) => {
                let keys = keys("bash runs true");
                match ShellParent::start(bash, bytes, program, may_continue) {
                    Ok(Some(parent)) => cases.push(Case::new(keys, move |count| Ok(vec![parent.launch(count)?]))),
                    Ok(None) => {}
                    Err(error) => failed.push(Measured::failed(keys, error)),
                }
            }
        }
    }
}

fn worker(context: &ExperimentContext<'_>, memory_bytes: u64, pages: Pages) -> Result<Rc<Worker>, LabError> {
    let setting = Setting {
        memory_bytes,
        pages,
        ..Setting::default()
    };
    // Puts the file on the file system of the lab's directory.
    let environment = match pages {
        Pages::File => Environment::default().with("TMPDIR", context.directory()),
        Pages::Small | Pages::Huge => Environment::default(),
    };
    Worker::start_with(&setting, environment).map(Rc::new)
}
