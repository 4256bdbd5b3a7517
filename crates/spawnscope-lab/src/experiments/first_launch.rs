//! Compares the first launch of a file with the second, for one file alone and for several at once.
//! If new executables are scanned, first launches take longer; if they are scanned one by one, the
//! launches queue. A scanner of every launch shows in comparison with a program in memory, which no
//! scanner watches. Who scans, and what helps, is the doctor's subject.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::copies::write_fresh_copies;
use crate::measurements::Value;
use crate::outcome::{Outcome, Unit, key, measure};
use crate::runtimes::find_program;
use crate::worker::Worker;
use crate::worker::protocol::{Request, Setting};
use spawnscope_data::statistics::median;
use spawnscope_system::tiny;

const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
const QUICK_COUNTS: [usize; 2] = [1, 4];
/// How many copies are launched one at a time in each round, because a single launch is too easily
/// disturbed.
const SINGLE_REPETITIONS: usize = 5;
const COLUMNS: usize = 4;

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
    let worker = &*Worker::start(&Setting::default())?;
    let in_memory = memory_program(context)?;
    let in_memory_path = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), in_memory.as_raw_fd()));
    let mut cases = Vec::new();
    for (name, program, status) in &programs {
        for &count in counts {
            let directory = context.directory().join(format!("fresh-{name}-{count}"));
            let files = count * repetitions(count);
            cases.push(case(name, count, move || {
                let copies = write_fresh_copies(program, &directory, files)?;
                let measured = first_and_second(worker, copies.chunks(count), *status);
                std::fs::remove_dir_all(&directory).map_err(LabError::doing("remove copies"))?;
                measured
            }));
        }
    }
    for count in [counts.first(), counts.last()].into_iter().flatten().copied() {
        let (paths, status) = (vec![in_memory_path.clone(); count * repetitions(count)], context.tiny().status);
        cases.push(case("tiny, in memory", count, move || first_and_second(worker, paths.chunks(count), status)));
    }
    outcome.add(&context.interleave(cases));
    outcome.note("a scanned first launch takes at least twice as long as the second: see `spawnscope doctor scanners`");
    Ok(outcome)
}

fn case<'a>(program: &str, count: usize, run: impl FnMut() -> Result<Vec<f64>, LabError> + 'a) -> Case<'a> {
    Case::with_fixed_work([Value::from(program), Value::from(count as u64)], run).quiet_columns(COLUMNS)
}

fn memory_program(context: &ExperimentContext<'_>) -> Result<OwnedFd, LabError> {
    let content = std::fs::read(context.tiny_path());
    content.and_then(|content| tiny::in_memory(&content)).map_err(LabError::doing("copy a program into memory"))
}

/// Returns how many groups of `count` copies are launched in a round.
fn repetitions(count: usize) -> usize {
    if count == 1 { SINGLE_REPETITIONS } else { 1 }
}

/// Launches each group of copies twice. A group has four values: the median and the last end of the
/// first launches, and those of the second launches. Returns the median of each over the groups.
fn first_and_second<'a>(
    worker: &Worker,
    groups: impl Iterator<Item = &'a [PathBuf]>,
    status: i32,
) -> Result<Vec<f64>, LabError> {
    let mut columns = vec![Vec::new(); COLUMNS];
    for copies in groups {
        let request =
            Request::Concurrent { paths: copies.iter().map(|path| path.display().to_string()).collect(), status };
        for launch in columns.chunks_mut(2) {
            let walls = worker.request(&request)?;
            launch[0].extend(median(walls.iter().copied()));
            launch[1].extend(walls.into_iter().reduce(f64::max));
        }
    }
    Ok(columns.into_iter().filter_map(median).collect())
}
