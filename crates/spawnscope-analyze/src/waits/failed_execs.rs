//! Failed execs. Combines those of a PATH search into one result: the program, the misses, their
//! cost, and the directories. PATH itself is not recorded; a search is recognized by its system
//! calls. Groups all other failed execs by errno.

use std::cmp::Reverse;

use crate::model::launch::{FailedExec, base_name};
use crate::model::tree::Forest;
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::Nanos;

/// Errors after which a search continues. Any other error ends it, since the file was found. The
/// error that explains a failed search best comes first: EACCES means that a file exists but must
/// not be executed.
const MISSES: [i32; 3] = [libc::EACCES, libc::ENOENT, libc::ENOTDIR];

#[derive(Clone, Debug, Default)]
pub struct Attempts<'a> {
    /// PATH searches, in order.
    pub searches: Vec<Search<'a>>,
    /// Failed execs outside of a search, in order.
    pub other_failures: Vec<FailedExec<'a>>,
}

/// A search of one process for one program. It tried at least two directories, including the one
/// with the program, unless the recording ended first.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    pub program: &'a [u8],
    pub misses: Vec<FailedExec<'a>>,
    pub end: SearchEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    Found,
    NotFound,
    /// The recording ended first, so the program may have been found later.
    Recording,
}

impl Search<'_> {
    pub fn cost(&self) -> Nanos {
        Nanos(self.misses.iter().map(|miss| miss.cost().0).sum())
    }

    /// Returns the error that best explains why the program was not found.
    fn decisive_errno(&self) -> Option<i32> {
        MISSES.into_iter().find(|errno| self.misses.iter().any(|miss| miss.errno == *errno))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSearches {
    /// Searches with at least one failed exec.
    pub searches: u64,
    pub misses: u64,
    /// Time inside the failed `execve` calls.
    pub cost: Nanos,
    /// Directories that lacked the program, the worst first.
    pub directories: Vec<Fault>,
    /// Programs that were searched for and never found, the most frequent first.
    pub not_found: Vec<Fault>,
}

/// Failed execs charged to a directory or a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The directory, or the program's base name.
    pub name: Vec<u8>,
    /// Number of searches with a failed exec in this directory or for this program.
    pub searches: u64,
    pub misses: u64,
    /// Time inside the failed `execve` calls.
    pub cost: Nanos,
    /// The error that best explains the failures.
    pub errno: i32,
}

/// Divides the failed execs of the launch at `index` into PATH searches and single failures.
pub fn attempts_of<'a>(forest: &Forest<'a>, index: usize) -> Attempts<'a> {
    let execs = &forest.launches[index].execs;
    let mut later_execs = execs.iter().filter_map(|exec| Some((exec.enter.get()?, exec.path()))).peekable();
    let mut attempts = Attempts::default();
    let mut misses = Vec::new();
    for failed in forest.failed_execs(index) {
        while let Some((_, path)) = later_execs.next_if(|(enter, _)| *enter < failed.enter) {
            attempts.close(&mut misses, Some(path), SearchEnd::NotFound);
        }
        if !MISSES.contains(&failed.errno) {
            attempts.close(&mut misses, Some(failed.path), SearchEnd::NotFound);
            attempts.other_failures.push(failed);
            continue;
        }
        if misses.last().is_some_and(|miss: &FailedExec<'_>| base_name(miss.path) != base_name(failed.path)) {
            attempts.close(&mut misses, None, SearchEnd::NotFound);
        }
        misses.push(failed);
    }
    // An exec with an unknown entry time can only belong to the last search.
    let of_unknown_entry = execs.last().filter(|exec| exec.enter.get().is_none()).map(|exec| exec.path());
    let found = later_execs.next().map(|(_, path)| path).or(of_unknown_entry);
    let end_if_not_found =
        if forest.launches[index].is_unfinished() { SearchEnd::Recording } else { SearchEnd::NotFound };
    attempts.close(&mut misses, found, end_if_not_found);
    attempts
}

impl<'a> Attempts<'a> {
    /// Ends a possible search for one program. `found` is the file whose exec followed, if any.
    /// Misses in a single directory are a search only if the recording ended first, since more
    /// directories might have followed.
    fn close(&mut self, misses: &mut Vec<FailedExec<'a>>, found: Option<&[u8]>, end_if_not_found: SearchEnd) {
        let Some(first) = misses.first() else { return };
        let program = base_name(first.path);
        let found = found.filter(|path| base_name(path) == program);
        let mut directories = misses.iter().map(|miss| miss.path).chain(found).map(directory_of);
        let end = found.map_or(end_if_not_found, |_| SearchEnd::Found);
        if end == SearchEnd::Recording || directories.any(|directory| directory != directory_of(first.path)) {
            self.searches.push(Search { program, misses: std::mem::take(misses), end });
        } else {
            self.other_failures.append(misses);
        }
    }
}

fn directory_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(slash) => &path[..slash],
        None => b".",
    }
}

#[derive(Default)]
pub(crate) struct PathSearchTally<'a> {
    sums: PathSearches,
    directories: HashMap<&'a [u8], Tally>,
    not_found: HashMap<&'a [u8], Tally>,
}

impl<'a> PathSearchTally<'a> {
    pub(crate) fn add(&mut self, search: &Search<'a>) {
        let misses = search.misses.len() as u64;
        self.sums.searches += 1;
        self.sums.misses += misses;
        self.sums.cost.0 += search.cost().0;
        let mut counted = HashSet::default();
        for miss in &search.misses {
            let directory = directory_of(miss.path);
            let tally = self.directories.entry(directory).or_default();
            tally.add(counted.insert(directory), 1, miss.cost(), miss.errno);
        }
        if let Some(errno) = search.decisive_errno().filter(|_| search.end == SearchEnd::NotFound) {
            let tally = self.not_found.entry(search.program).or_default();
            tally.add(true, misses, search.cost(), errno);
        }
    }

    pub(crate) fn finish(self) -> PathSearches {
        PathSearches { directories: ranked(self.directories), not_found: ranked(self.not_found), ..self.sums }
    }
}

#[derive(Default)]
struct Tally {
    searches: u64,
    misses: u64,
    cost: Nanos,
    /// Index in `MISSES` of the error that best explains the failures.
    errno_index: Option<usize>,
}

impl Tally {
    fn add(&mut self, is_new_search: bool, misses: u64, cost: Nanos, errno: i32) {
        self.searches += u64::from(is_new_search);
        self.misses += misses;
        self.cost.0 += cost.0;
        let index = MISSES.iter().position(|miss| *miss == errno);
        self.errno_index = self.errno_index.into_iter().chain(index).min();
    }
}

fn ranked(tallies: HashMap<&[u8], Tally>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (name, Tally { searches, misses, cost, errno_index }) in tallies {
        if let Some(errno_index) = errno_index {
            faults.push(Fault { name: name.to_vec(), searches, misses, cost, errno: MISSES[errno_index] });
        }
    }
    faults.sort_by(|a, b| (Reverse((a.misses, a.cost)), &a.name).cmp(&(Reverse((b.misses, b.cost)), &b.name)));
    faults
}

/// The failed execs outside of PATH searches that have one errno.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub errno: i32,
    pub count: u64,
    /// The most frequent file, as given.
    pub path: Vec<u8>,
    pub files: u64,
}

/// Returns all failed execs: PATH searches, and the other failures by errno, the most frequent
/// first.
pub fn failures(forest: &Forest<'_>) -> (PathSearches, Vec<Failure>) {
    let mut searches = PathSearchTally::default();
    let mut others = HashMap::default();
    let failing = (0..forest.launches.len()).filter(|index| forest.failed_execs(*index).len() > 0);
    for index in failing {
        let attempts = attempts_of(forest, index);
        for search in &attempts.searches {
            searches.add(search);
        }
        for failed in &attempts.other_failures {
            *others.entry((failed.errno, failed.path)).or_default() += 1;
        }
    }
    (searches.finish(), by_errno(others))
}

fn by_errno(counts: HashMap<(i32, &[u8]), u64>) -> Vec<Failure> {
    let mut counts: Vec<((i32, &[u8]), u64)> = counts.into_iter().collect();
    counts.sort_by_key(|((errno, path), count)| (*errno, Reverse(*count), *path));
    let mut failures: Vec<Failure> = counts
        .chunk_by(|((one, _), _), ((other, _), _)| one == other)
        .map(|files| Failure {
            errno: files[0].0.0,
            count: files.iter().map(|(_, count)| count).sum(),
            path: files[0].0.1.to_vec(),
            files: files.len() as u64,
        })
        .collect();
    failures.sort_by_key(|failure| (Reverse(failure.count), failure.errno));
    failures
}

/// Merges consecutive failed execs of the same file with the same errno. Returns the first of each
/// run and the length of the run.
pub fn without_repetitions<'f, 'a>(failed: &'f [FailedExec<'a>]) -> Vec<(&'f FailedExec<'a>, u64)> {
    let repeated = failed.chunk_by(|one, other| (one.errno, one.path) == (other.errno, other.path));
    repeated.map(|same| (&same[0], same.len() as u64)).collect()
}
