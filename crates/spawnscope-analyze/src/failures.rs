//! Failed execs of a recording: PATH searches, and all other failed execs grouped by errno.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::launch::FailedExec;
use crate::path_search::{PathSearchTally, PathSearches, attempts_of};
use crate::tree::Forest;

/// The failed execs outside of PATH searches that have one errno.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The errno.
    pub errno: i32,
    /// Number of failed execs.
    pub count: u64,
    /// The most frequent file, as given.
    pub path: Vec<u8>,
    /// Number of different files.
    pub files: u64,
}

/// Returns all failed execs: PATH searches, and the other failures by errno, the most frequent
/// first.
#[must_use]
pub fn failures(forest: &Forest<'_>) -> (PathSearches, Vec<Failure>) {
    let mut searches = PathSearchTally::default();
    let mut others = HashMap::new();
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
#[must_use]
pub fn without_repetitions<'f, 'a>(failed: &'f [FailedExec<'a>]) -> Vec<(&'f FailedExec<'a>, u64)> {
    let repeated = failed.chunk_by(|one, other| (one.errno, one.path) == (other.errno, other.path));
    repeated.map(|same| (&same[0], same.len() as u64)).collect()
}
