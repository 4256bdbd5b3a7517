//! Compares the first launch of a file with the second, for one file alone and for several at once.
//! If new executables are scanned, first launches take longer; if they are scanned one by one, the
//! launches queue. A scanner that scans every launch is found by comparison with a program in
//! memory, which no scanner watches.

use std::path::{Path, PathBuf};

use super::scanners;
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::copies::{MemoryProgram, write_fresh_copies};
use crate::outcome::{Outcome, Unit, Value, key, measure};
use crate::shell::find_program;
use crate::worker::Worker;
use crate::worker::protocol::{Request, Setting};
use spawnscope_data::statistics::median;

const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
const QUICK_COUNTS: [usize; 2] = [1, 4];
/// How many copies are launched one at a time in each round, because a single launch is too easily
/// disturbed. With one launch per round, and three compilers running, two of eight runs reported a
/// scanner that did not exist.
const SINGLE_REPETITIONS: usize = 5;
/// The index of the median of first launches.
pub(super) const FIRST_MEDIAN: usize = 0;
/// The index of the time until the last of the first launches ended.
pub(super) const FIRST_LAST_END: usize = 1;
/// The index of the median of second launches.
pub(super) const SECOND_MEDIAN: usize = 2;
/// The index of the time until the last of the second launches ended.
pub(super) const SECOND_LAST_END: usize = 3;
/// The offset from the index of a measurement to that of its minimum. Minima are not shown, but
/// used to detect scanners.
pub(super) const MINIMUM_OFFSET: usize = 4;

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
    let mut programs = vec![("tiny", context.tiny_path(), context.tiny().status)];
    programs.extend(find_program("true").and_then(|path| path.canonicalize().ok()).map(|path| ("true", path, 0)));
    if programs.len() == 1 {
        outcome.note("true not found: only the tiny program is launched");
    }
    let counts: &[usize] = context.pick(&COUNTS, &QUICK_COUNTS);
    let worker = Worker::start(&Setting::default())?;
    let in_memory = MemoryProgram::copy(&context.tiny_path())?;
    let mut cases = file_cases(context, &worker, &programs, counts);
    let files = cases.len();
    for count in smallest_and_largest(counts) {
        let keys = [Value::from("tiny, in memory"), Value::from(count as u64)];
        let (paths, status) = (vec![in_memory.path(); count * repetitions(count)], context.tiny().status);
        let worker = &worker;
        cases.push(
            Case::with_fixed_work(keys, move || first_and_second(worker, paths.chunks(count), status))
                .quiet_columns(MINIMUM_OFFSET),
        );
    }
    let measured = context.interleave(cases);
    outcome.add(&measured);
    let (file_results, in_memory) = measured.split_at(files);
    let tiny_cases = file_results.get(..counts.len()).unwrap_or_default();
    let by_program = programs.iter().zip(file_results.chunks(counts.len()));
    let new_file_notes = by_program.filter_map(|((name, ..), cases)| scanners::new_file_note(name, cases));
    let notes = scanners::every_launch_note(tiny_cases, in_memory).into_iter().chain(new_file_notes);
    notes.for_each(|note| outcome.note(note));
    Ok(outcome)
}

/// A program's name, its file and its exit status.
type InstalledProgram = (&'static str, PathBuf, i32);

/// Returns a case for each program and each number of fresh copies that are launched at once.
fn file_cases<'a>(
    context: &ExperimentContext<'_>,
    worker: &'a Worker,
    programs: &'a [InstalledProgram],
    counts: &[usize],
) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (name, program, status) in programs {
        for &count in counts {
            let keys = [Value::from(*name), Value::from(count as u64)];
            let directory = context.directory().join(format!("fresh-{name}-{count}"));
            cases.push(case(keys, worker, (program, *status), directory, count));
        }
    }
    cases
}

/// Returns a case that writes fresh copies of a program in each round, and launches `count` of them
/// at once.
fn case<'a>(
    keys: [Value; 2],
    worker: &'a Worker,
    (program, status): (&'a Path, i32),
    directory: PathBuf,
    count: usize,
) -> Case<'a> {
    let case = Case::with_fixed_work(keys, move || {
        let copies = write_fresh_copies(program, &directory, count * repetitions(count))?;
        let measured = first_and_second(worker, copies.chunks(count), status);
        std::fs::remove_dir_all(&directory).map_err(LabError::doing("remove copies"))?;
        measured
    });
    case.quiet_columns(MINIMUM_OFFSET)
}

/// Returns how many groups of `count` copies are launched in a round.
fn repetitions(count: usize) -> usize {
    if count == 1 { SINGLE_REPETITIONS } else { 1 }
}

/// Launches each group of copies twice. A group has four values: the median and the last end of the
/// first launches, and those of the second launches. Returns the median of each value over the
/// groups, and then the minimum of each.
fn first_and_second<'a>(
    worker: &Worker,
    groups: impl Iterator<Item = &'a [PathBuf]>,
    status: i32,
) -> Result<Vec<f64>, LabError> {
    let mut group_values = Vec::new();
    for copies in groups {
        let request = Request::Concurrent { paths: copies.iter().map(|path| super::text(path)).collect(), status };
        let mut values = Vec::new();
        for _ in 0..2 {
            let walls = worker.request(&request)?;
            values.extend(median(walls.iter().copied()));
            values.extend(walls.iter().copied().reduce(f64::max));
        }
        group_values.push(values);
    }
    let medians = (0..MINIMUM_OFFSET).filter_map(|number| median(column(&group_values, number)));
    let minima = (0..MINIMUM_OFFSET).filter_map(|number| column(&group_values, number).reduce(f64::min));
    Ok(medians.chain(minima).collect())
}

fn column(group_values: &[Vec<f64>], number: usize) -> impl Iterator<Item = f64> {
    group_values.iter().filter_map(move |values| values.get(number).copied())
}

/// Returns the smallest and the largest count.
fn smallest_and_largest(counts: &[usize]) -> impl Iterator<Item = usize> {
    let ends = [counts.first(), counts.last()];
    ends.into_iter().flatten().copied()
}
