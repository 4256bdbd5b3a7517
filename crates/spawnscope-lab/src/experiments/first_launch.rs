//! Story 4: the first launch of a file against the second, alone and several at once. If each new executable is scanned, first launches
//! take longer; if it is scanned one by one, they queue. A scanner that scans every launch shows by comparison with a program in memory,
//! which no scanner watches.

use std::path::{Path, PathBuf};

use super::scanners;
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::copies::{InMemory, forget, fresh};
use crate::outcome::{Outcome, Unit, Value, key, measure};
use crate::shell::find;
use crate::worker::Worker;
use crate::worker::protocol::{Request, Setting};
use spawnscope_data::statistics::median;

const CONCURRENT: [usize; 5] = [1, 2, 4, 8, 16];
const QUICK_CONCURRENT: [usize; 2] = [1, 4];
/// How often a single copy is launched in each round: one launch alone is too easily disturbed.
const ALONE: usize = 5;
/// The indexes of the measurements.
pub(super) const FIRST: usize = 0;
pub(super) const FIRST_LAST: usize = 1;
pub(super) const SECOND: usize = 2;
pub(super) const SECOND_LAST: usize = 3;
/// The offset from each measurement to its minimum, which is not shown, but used to judge.
pub(super) const UNDISTURBED: usize = 4;

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("program", "program", Unit::Text),
        key("at_once", "at once", Unit::Count),
        measure("first_ns", "first", Unit::Nanos),
        measure("first_last_ns", "last of the first", Unit::Nanos),
        measure("second_ns", "second", Unit::Nanos),
        measure("second_last_ns", "last of the second", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("The first launch of fresh files against the second", columns);
    outcome.draw_bars(&["first_ns", "first_last_ns", "second_ns", "second_last_ns"]);
    let mut programs = vec![("tiny", context.tiny_path(), context.tiny().status)];
    programs.extend(
        find("true")
            .and_then(|path| path.canonicalize().ok())
            .map(|path| ("true", path, 0)),
    );
    if programs.len() == 1 {
        outcome.note("true not found: only the tiny program is launched");
    }
    let counts: &[usize] = context.pick(&CONCURRENT, &QUICK_CONCURRENT);
    let worker = Worker::start(&Setting::default())?;
    let in_memory = InMemory::of(&context.tiny_path())?;
    let mut cases = of_files(context, &worker, &programs, counts);
    let files = cases.len();
    for count in ends_of(counts) {
        let keys = [Value::from("tiny, in memory"), Value::from(count as u64)];
        let (paths, status) = (vec![in_memory.path(); count * times(count)], context.tiny().status);
        let asked = &worker;
        let run = move || first_and_second(asked, paths.chunks(count), status);
        cases.push(Case::whole(keys, run).promises(UNDISTURBED));
    }
    let measured = context.interleave(cases);
    outcome.add(&measured);
    outcome.note_equal_columns("first_ns", &["second_ns"]);
    let (of_files, in_memory) = measured.split_at(files);
    let of_tiny = of_files.get(..counts.len()).unwrap_or_default();
    if let Some(note) = scanners::of_all(of_tiny, in_memory) {
        outcome.note(note);
    }
    for ((name, ..), of_it) in programs.iter().zip(of_files.chunks(counts.len())) {
        if let Some(note) = scanners::of_new(name, of_it) {
            outcome.note(note);
        }
    }
    outcome.note("out of the cache: the file's content, not its metadata, which only root could drop, and only for the whole machine");
    Ok(outcome)
}

/// A name, its file and its exit status.
type Named = (&'static str, PathBuf, i32);

/// Each program in `counts` fresh copies at once, and the last program also evicted from the page cache.
fn of_files<'a>(
    context: &ExperimentContext<'_>,
    worker: &'a Worker,
    programs: &'a [Named],
    counts: &[usize],
) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (name, program, status) in programs {
        for &count in counts {
            let keys = [Value::from(*name), Value::from(count as u64)];
            let directory = context.directory().join(format!("fresh-{name}-{count}"));
            let copies = (count, Cache::AsWritten);
            cases.push(case(keys, worker, (program, *status), directory, copies));
        }
    }
    if let Some((name, program, status)) = programs.last() {
        let keys = [Value::from(format!("{name}, out of the cache")), Value::from(1)];
        let directory = context.directory().join("cold");
        cases.push(case(keys, worker, (program, *status), directory, (1, Cache::Cold)));
    }
    cases
}

/// How much of a fresh copy is in the page cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cache {
    /// All of its content.
    AsWritten,
    /// None of its content.
    Cold,
}

/// A program with its exit status, in `count` fresh copies for each round.
fn case<'a>(
    keys: [Value; 2],
    worker: &'a Worker,
    (program, status): (&'a Path, i32),
    directory: PathBuf,
    (count, cache): (usize, Cache),
) -> Case<'a> {
    let run = move || {
        let copies = fresh(program, &directory, count * times(count))?;
        if cache == Cache::Cold {
            copies.iter().try_for_each(|copy| forget(copy))?;
        }
        let measured = first_and_second(worker, copies.chunks(count), status);
        std::fs::remove_dir_all(&directory).map_err(LabError::doing("remove copies"))?;
        measured
    };
    Case::whole(keys, run).promises(UNDISTURBED)
}

/// How often such a group is launched in a round.
fn times(at_once: usize) -> usize {
    if at_once == 1 { ALONE } else { 1 }
}

/// For each group of copies at once: the median and the last end of the first launches, and of the second. Returns the median over the
/// groups of each, and then the minimum of each.
fn first_and_second<'a>(
    worker: &Worker,
    groups: impl Iterator<Item = &'a [PathBuf]>,
    status: i32,
) -> Result<Vec<f64>, LabError> {
    let mut of_groups = Vec::new();
    for copies in groups {
        let request = Request::AllAtOnce {
            paths: copies.iter().map(|path| super::text(path)).collect(),
            status,
        };
        let mut values = Vec::new();
        for _ in 0..2 {
            let walls = worker.ask(&request)?;
            values.extend(median(walls.iter().copied()));
            values.extend(walls.iter().copied().reduce(f64::max));
        }
        of_groups.push(values);
    }
    let column = |column: usize| of_groups.iter().filter_map(move |values| values.get(column).copied());
    let medians = (0..UNDISTURBED).filter_map(|number| median(column(number)));
    let least = (0..UNDISTURBED).filter_map(|number| column(number).reduce(f64::min));
    Ok(medians.chain(least).collect())
}

/// The smallest and the largest count.
fn ends_of(counts: &[usize]) -> impl Iterator<Item = usize> {
    let ends = [counts.first(), counts.last()];
    ends.into_iter().flatten().copied()
}
