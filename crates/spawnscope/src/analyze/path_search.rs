//! Folds the failed execs of a PATH search into one finding: a program, its misses, their cost, the directories at
//! fault. Knows nothing of PATH itself: a search is what it looks like from the kernel.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::launch::{FailedExec, Launch, base_name};
use super::tree::Forest;
use crate::event::Nanos;

/// The errors that say "not here", after which a search goes on; any other ends it, for the file was found.
const MISSES: [i32; 3] = [libc::ENOENT, libc::ENOTDIR, libc::EACCES];

/// One process looking for one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search<'a> {
    /// Base name of the program.
    pub program: &'a [u8],
    /// Files tried in vain, in order.
    pub misses: Vec<Miss<'a>>,
    /// Whether the program was found in the end.
    pub found: bool,
}

/// One file that a search tried in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Miss<'a> {
    /// The directory, as it was given.
    pub directory: &'a [u8],
    /// Time inside the failed `execve`.
    pub cost: Nanos,
}

/// All searches of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathSearches {
    /// Searches that missed at least once.
    pub searches: u64,
    /// Files tried in vain.
    pub misses: u64,
    /// Time inside the failed `execve` calls.
    pub cost: Nanos,
    /// Directories that lacked what was looked for, the worst first.
    pub directories: Vec<Fault>,
    /// Programs that were not found at all, the most missed first.
    pub not_found: Vec<Fault>,
}

/// Misses charged to a directory or a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The directory, or the program's base name.
    pub name: Vec<u8>,
    /// Searches that missed there.
    pub searches: u64,
    /// Files tried in vain.
    pub misses: u64,
    /// Time that took.
    pub cost: Nanos,
}

impl Search<'_> {
    /// Time inside the failed `execve` calls.
    #[must_use]
    pub fn cost(&self) -> Nanos {
        Nanos(self.misses.iter().map(|miss| miss.cost.0).sum())
    }
}

/// The searches of one launch that missed at least once, in order.
#[must_use]
pub fn searches_of<'a>(launch: &Launch<'a>) -> Vec<Search<'a>> {
    let mut searches = Vec::new();
    let mut open: Option<Search<'a>> = None;
    let mut execs = launch
        .execs
        .iter()
        .filter_map(|exec| Some((exec.enter?, exec.path)))
        .peekable();
    for failed in &launch.failed_execs {
        while let Some((_, path)) = execs.next_if(|(enter, _)| *enter < failed.enter) {
            searches.extend(close(&mut open, path));
        }
        let program = base_name(failed.path);
        if !MISSES.contains(&failed.errno) {
            searches.extend(close(&mut open, failed.path));
            continue;
        }
        if open.as_ref().is_some_and(|search| search.program != program) {
            searches.extend(open.take());
        }
        let search = open.get_or_insert_with(|| Search {
            program,
            misses: Vec::new(),
            found: false,
        });
        search.misses.push(Miss {
            directory: directory_of(failed),
            cost: failed.returned.since(failed.enter),
        });
    }
    // An exec whose entry was not seen can only be the answer to what came last.
    let of_unknown_entry = || {
        launch
            .execs
            .last()
            .filter(|exec| exec.enter.is_none())
            .map(|exec| exec.path)
    };
    let answer = execs.next().map(|(_, path)| path).or_else(of_unknown_entry);
    searches.extend(close(&mut open, answer.unwrap_or_default()));
    searches
}

/// Ends the open search at a file that was found: the answer, if it is the program looked for.
fn close<'a>(open: &mut Option<Search<'a>>, path: &[u8]) -> Option<Search<'a>> {
    let mut search = open.take()?;
    search.found = search.program == base_name(path);
    Some(search)
}

fn directory_of<'a>(failed: &FailedExec<'a>) -> &'a [u8] {
    match failed.path.iter().rposition(|byte| *byte == b'/') {
        Some(0) => b"/",
        Some(slash) => &failed.path[..slash],
        None => b".",
    }
}

/// All searches of all launches, with the directories and programs at fault ranked.
#[must_use]
pub fn path_searches(forest: &Forest<'_>) -> PathSearches {
    let mut all = PathSearches::default();
    let mut directories: HashMap<&[u8], Tally> = HashMap::new();
    let mut not_found: HashMap<&[u8], Tally> = HashMap::new();
    for search in forest.launches.iter().flat_map(searches_of) {
        all.searches += 1;
        all.misses += search.misses.len() as u64;
        all.cost.0 += search.cost().0;
        for (position, miss) in search.misses.iter().enumerate() {
            let seen_before = search.misses[..position]
                .iter()
                .any(|earlier| earlier.directory == miss.directory);
            directories
                .entry(miss.directory)
                .or_default()
                .add(!seen_before, 1, miss.cost);
        }
        if !search.found {
            not_found
                .entry(search.program)
                .or_default()
                .add(true, search.misses.len() as u64, search.cost());
        }
    }
    all.directories = ranked(directories);
    all.not_found = ranked(not_found);
    all
}

#[derive(Default)]
struct Tally {
    searches: u64,
    misses: u64,
    cost: Nanos,
}

impl Tally {
    fn add(&mut self, is_new_search: bool, misses: u64, cost: Nanos) {
        self.searches += u64::from(is_new_search);
        self.misses += misses;
        self.cost.0 += cost.0;
    }
}

fn ranked(tallies: HashMap<&[u8], Tally>) -> Vec<Fault> {
    let fault = |(name, tally): (&[u8], Tally)| Fault {
        name: name.to_vec(),
        searches: tally.searches,
        misses: tally.misses,
        cost: tally.cost,
    };
    let mut faults: Vec<Fault> = tallies.into_iter().map(fault).collect();
    faults.sort_by(|a, b| (Reverse((a.misses, a.cost)), &a.name).cmp(&(Reverse((b.misses, b.cost)), &b.name)));
    faults
}
