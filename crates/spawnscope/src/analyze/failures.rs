//! Failed execs of a whole recording: those of PATH searches folded, the others by errno with the files they named.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::launch::FailedExec;
use super::path_search::{PathSearchTally, PathSearches, attempts_of};
use super::tree::Forest;

/// Execs that failed with one errno and that no PATH search explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why they failed.
    pub errno: i32,
    /// How many.
    pub count: u64,
    /// The file that failed most often, as it was given.
    pub path: Vec<u8>,
    /// Files that failed so.
    pub files: u64,
}

/// All failed execs: PATH searches, and the others, the most frequent errno first.
#[must_use]
pub fn failures(forest: &Forest<'_>) -> (PathSearches, Vec<Failure>) {
    let mut searches = PathSearchTally::default();
    let mut single = HashMap::new();
    let failing = (0..forest.launches.len()).filter(|index| forest.failed_execs(*index).len() > 0);
    for index in failing {
        let attempts = attempts_of(forest, index);
        for search in &attempts.searches {
            searches.add(search);
        }
        for failed in &attempts.single {
            *single.entry((failed.errno, failed.path)).or_default() += 1;
        }
    }
    (searches.finish(), by_errno(single))
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

/// Failed execs with how often each was repeated in a row: a program that retries says nothing new each time.
#[must_use]
pub fn without_repetitions<'f, 'a>(failed: &'f [FailedExec<'a>]) -> Vec<(&'f FailedExec<'a>, u64)> {
    let is_same = |one: &FailedExec<'_>, other: &FailedExec<'_>| (one.errno, one.path) == (other.errno, other.path);
    failed
        .chunk_by(is_same)
        .map(|repeated| (&repeated[0], repeated.len() as u64))
        .collect()
}
