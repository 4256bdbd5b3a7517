//! Compares the first launch of a file with the second, for one file alone and for several at once.
//! If new executables are scanned, first launches take longer; if they are scanned one by one, the
//! launches queue. A scanner of every launch shows in comparison with a program in memory, which no
//! scanner watches. Who scans, and what helps, is the doctor's subject.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
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

/// Creates `directory`, and in it `count` copies of a program that were never executed. Fails if a
/// copy does not stay in the page cache.
fn write_fresh_copies(program: &Path, directory: &Path, count: usize) -> Result<Vec<PathBuf>, LabError> {
    let doing = LabError::doing(format!("copy {}", program.display()));
    fs::create_dir_all(directory).map_err(&doing)?;
    let content = fs::read(program).map_err(&doing)?;
    let copies = (0..count).map(|number| {
        let copy = directory.join(format!("copy{number}"));
        match write_copy(&copy, &content).map_err(&doing)? {
            true => Ok(copy),
            false => Err(LabError::Unavailable(
                "the temporary directory's file system does not keep written data in the page cache".to_owned(),
            )),
        }
    });
    copies.collect()
}

/// Writes a program, and returns whether all of it is in the page cache. The kernel's copy
/// functions, such as copy_file_range, would not put it there on file systems that share blocks
/// between files.
fn write_copy(path: &Path, content: &[u8]) -> io::Result<bool> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o755);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    Ok(pages_in_memory(&file)? == content.len().div_ceil(rustix::param::page_size()))
}

fn pages_in_memory(file: &File) -> io::Result<usize> {
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes == 0 {
        return Ok(0);
    }
    let mut pages = vec![0u8; bytes.div_ceil(rustix::param::page_size())];
    // SAFETY: the new mapping is never accessed, and `pages` has room for the byte that the kernel
    // writes for each of its pages.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let result = libc::mincore(start, bytes, pages.as_mut_ptr());
        let error = io::Error::last_os_error();
        libc::munmap(start, bytes);
        if result != 0 {
            return Err(error);
        }
    }
    Ok(pages.iter().filter(|page| **page & 1 == 1).count())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn fresh_copies_are_executable_and_in_the_page_cache() {
        let directory = tempfile::tempdir().unwrap();
        // The program is on the same file system, which might share blocks between files.
        let program = directory.path().join("program");
        fs::write(&program, fs::read("/bin/true").unwrap()).unwrap();
        let made = write_fresh_copies(&program, &directory.path().join("fresh"), 3).unwrap();
        assert_eq!(made.len(), 3);
        for copy in &made {
            let file = File::open(copy).unwrap();
            let pages = file.metadata().unwrap().len().div_ceil(rustix::param::page_size() as u64);
            assert_eq!(pages_in_memory(&file).unwrap() as u64, pages);
            assert_eq!(fs::read(copy).unwrap(), fs::read(&program).unwrap());
            assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o111, 0o111, "it may be executed");
        }
    }
}
