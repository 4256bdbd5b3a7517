//! Which directories answer, and how fast: those of PATH, and others that the doctor itself would access. A measuring process tries
//! each directory, all at the same time, so that a directory that hangs delays neither the others nor the doctor.

use std::collections::HashSet;
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{folder, missing_directories};
use crate::checks::{loader_cache, loader_environment};
use crate::machine::Machine;
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::measuring_process::MeasuringProcess;
use spawnscope_system::launch_timing::shared::Shareable;
use spawnscope_system::launch_timing::timing::timed;

/// How long a directory may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);
/// How long all directories together may take, if they cannot all be tried at once.
pub(super) const LIMIT: Duration = Duration::from_millis(400);
/// How many processes run at once.
const AT_ONCE: usize = 64;
/// How many names are looked up in a directory. Each is new, because the kernel caches negative results.
const NAMES: usize = 9;

/// How directories answered.
#[derive(Default)]
pub(super) struct Answers {
    /// Existing directories of PATH, each with the time of a look-up that finds nothing; unknown if it took too long.
    pub(super) lookups: Vec<(PathBuf, Option<Nanos>)>,
    /// Directories that did not answer in time, in PATH or not.
    pub(super) silent: Vec<PathBuf>,
    /// Directories for which no process could be started, or did not get enough time.
    pub(super) untried: Vec<PathBuf>,
}

impl Answers {
    pub(super) fn of(machine: &Machine) -> Answers {
        let end = Instant::now() + LIMIT;
        let mut answers = Answers::default();
        let mut asked: Vec<PendingQuestion> = Vec::new();
        let questions = questions(machine);
        let missing_directories = missing_directories::of(machine, &questions, AT_ONCE, end);
        for question in questions
            .into_iter()
            .filter(|question| !missing_directories.contains(&question.directory))
        {
            let ask = || (Instant::now() < end).then(|| question.ask(machine)).flatten();
            if asked.len() >= AT_ONCE {
                answers.take(std::mem::take(&mut asked), end);
            }
            let mut process = ask();
            if process.is_none() && !asked.is_empty() {
                // If processes are scarce, one directory after the other.
                answers.take(std::mem::take(&mut asked), end);
                process = ask();
            }
            match process {
                Some(process) => asked.push(PendingQuestion {
                    until: Instant::now() + PATIENCE,
                    question,
                    process,
                }),
                None => answers.untried.push(question.directory),
            }
        }
        answers.take(asked, end);
        answers
    }

    fn take(&mut self, asked: Vec<PendingQuestion>, end: Instant) {
        for PendingQuestion {
            question,
            process,
            until,
        } in asked
        {
            let measured = process.end(until.min(end));
            let Question { directory, is_of_path } = question;
            let answer = measured.results.answer.load(Ordering::Acquire);
            let fastest = measured.results.fastest.load(Ordering::Acquire);
            let is_known = match answer {
                DIRECTORY if is_of_path => fastest > 0 || measured.is_in_time,
                answer => matches!(answer, DIRECTORY | SOMETHING_ELSE),
            };
            if is_known {
                let lookup = (is_of_path && fastest > 0).then_some(Nanos(fastest));
                self.lookups.extend(lookup.map(|time| (directory, Some(time))));
            } else if answer == NOT_ASKED || measured.is_runnable || until > end {
                // It was not tried, or did not get its full time.
                self.untried.push(directory);
            } else {
                if is_of_path {
                    self.lookups.push((directory.clone(), None));
                }
                self.silent.push(directory);
            }
        }
    }
}

pub(super) struct Question {
    pub(super) directory: PathBuf,
    is_of_path: bool,
}

struct PendingQuestion {
    question: Question,
    process: MeasuringProcess<SharedResults>,
    until: Instant,
}

/// Each directory once, those outside of PATH first.
fn questions(machine: &Machine) -> Vec<Question> {
    let path = machine.search_path().into_iter().map(|directory| (directory, true));
    let homes = machine.variable("HOME").map(PathBuf::from);
    let others = std::iter::once(machine.directory().to_owned())
        .chain(folder::candidates(machine))
        .chain(homes)
        .chain(loader_environment::named(machine))
        .chain(loader_cache::directories(machine));
    let mut seen = HashSet::new();
    let mut questions: Vec<Question> = path
        .chain(others.map(|directory| (directory, false)))
        .filter(|(directory, _)| {
            directory.is_absolute() && directory != Path::new("/") && seen.insert(directory.clone())
        })
        .map(|(directory, is_of_path)| Question { directory, is_of_path })
        .collect();
    // A long PATH may not be finished in time. Without a directory for files, more measurements would be missing.
    questions.sort_by_key(|question| question.is_of_path);
    questions
}

/// The process did not run in time, because the machine is too busy.
const NOT_ASKED: u64 = 0;
const ASKED: u64 = 1;
const DIRECTORY: u64 = 2;
const SOMETHING_ELSE: u64 = 3;

/// The results of a process that tries a directory.
#[repr(C)]
struct SharedResults {
    answer: AtomicU64,
    /// The fastest look-up in nanoseconds, ignoring those during which the process was preempted. A slow file system is slow each time,
    /// while a busy machine slows only some look-ups.
    fastest: AtomicU64,
}

// SAFETY: consists of atomic numbers, for which zero is valid.
unsafe impl Shareable for SharedResults {}

impl Question {
    /// `None` if no process can be created.
    fn ask(&self, machine: &Machine) -> Option<MeasuringProcess<SharedResults>> {
        let path = machine.path(&self.directory);
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
        let directory = text(&path)?;
        let names = (0..if self.is_of_path { NAMES } else { 0 })
            .map(|number| text(&path.join(format!("spawnscope-{}-{number}", std::process::id()))))
            .collect::<Option<Vec<CString>>>()?;
        MeasuringProcess::start(|results: &SharedResults| {
            results.answer.store(ASKED, Ordering::Release);
            let is_directory = kind(&directory) == Some(libc::S_IFDIR);
            let answer = if is_directory { DIRECTORY } else { SOMETHING_ELSE };
            results.answer.store(answer, Ordering::Release);
            for name in names.iter().take_while(|_| is_directory) {
                let interruptions = interruptions();
                let took = timed(|| _ = kind(name)).0.max(1);
                let fastest = results.fastest.load(Ordering::Relaxed);
                if (fastest == 0 || took < fastest) && interruptions == self::interruptions() {
                    results.fastest.store(took, Ordering::Release);
                }
            }
            Some(())
        })
        .ok()
    }
}

/// How often this process was preempted.
fn interruptions() -> libc::c_long {
    // SAFETY: all zeroes is a valid `rusage`, which the kernel fills.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage.ru_nivcsw
    }
}

/// The type of a file; `None` if it does not exist or cannot be accessed.
pub(super) fn kind(path: &CStr) -> Option<libc::mode_t> {
    // SAFETY: the path ends with NUL; all zeroes is a valid `stat`, which the kernel fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::stat(path.as_ptr(), &raw mut stat) == 0).then_some(stat.st_mode & libc::S_IFMT)
    }
}
