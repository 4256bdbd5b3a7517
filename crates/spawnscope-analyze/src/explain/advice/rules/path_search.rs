//! Launches that search for their program in PATH directories that lack it. Each miss is a failed
//! exec.

use std::collections::{BTreeMap, HashMap};

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::predict::whatif::changes::Change;
use crate::waits::failed_execs::{PathSearchTally, PathSearches, SearchEnd, attempts_of};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Maximum number of directories, of parents and of programs that are listed.
const MAX_NAMED: usize = 3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let forest = context.forest();
    let mut searching = Vec::new();
    let mut parents: HashMap<&[u8], u64> = HashMap::new();
    let mut programs: BTreeMap<&[u8], (u64, &[u8])> = BTreeMap::new();
    let mut tally = PathSearchTally::default();
    for (index, launch) in context.launched() {
        if forest.failed_execs(index as usize).len() == 0 {
            continue;
        }
        let attempts = attempts_of(forest, index as usize);
        let first = attempts.searches.first();
        let found = first.filter(|search| search.end == SearchEnd::Found);
        let Some((search, exec)) = found.zip(launch.execs.first()) else {
            continue;
        };
        tally.add(search);
        searching.push(index);
        *parents.entry(launch.birth_command.name).or_default() += 1;
        programs.entry(search.program).or_insert((0, exec.path())).0 += 1;
    }
    if searching.len() < MIN_REPETITIONS {
        return Vec::new();
    }
    vec![finding(context, searching, &tally.finish(), parents, &programs)]
}

fn finding(
    context: &RuleContext<'_, '_>,
    searching: Vec<u32>,
    searches: &PathSearches,
    parents: HashMap<&[u8], u64>,
    programs: &BTreeMap<&[u8], (u64, &[u8])>,
) -> Finding {
    let parents: Vec<String> = most_frequent(parents.into_iter().map(|(parent, count)| (count, parent)))
        .into_iter()
        .map(|(count, parent)| format!("{} ({})", name(parent), units::count(count)))
        .collect();
    let found: Vec<String> =
        most_frequent(programs.values().copied()).into_iter().map(|(_, path)| name(path)).collect();
    let directories = searches.directories.iter().take(MAX_NAMED);
    let directories: Vec<String> = directories.map(|directory| name(&directory.name)).collect();
    let title = format!("{} search PATH directories that lack the program", launches(searching.len()));
    Finding::measured("path-search", title, searching)
        .fixed_elsewhere()
        .evidence_lines(evidence(searches, &parents))
        .with_example(context)
        .recipe("path-search", &[], &[("programs", &found.join(", ")), ("directories", &directories.join(", "))])
        .predicted_by(Change::Absolute, "--absolute='*'")
}

/// Returns the names with the highest counts.
fn most_frequent<'a>(counted: impl Iterator<Item = (u64, &'a [u8])>) -> Vec<(u64, &'a [u8])> {
    let mut counted: Vec<_> = counted.collect();
    counted.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    counted.truncate(MAX_NAMED);
    counted
}

fn evidence(searches: &PathSearches, parents: &[String]) -> Vec<String> {
    let directories = searches.directories.iter().take(MAX_NAMED);
    let directories: Vec<String> = directories
        .map(|directory| format!("{} ({})", name(&directory.name), units::count(directory.misses)))
        .collect();
    let each = Nanos(searches.cost.0 / searches.misses.max(1));
    vec![
        format!(
            "{}, {} each on average, {} in all; most in {}",
            units::counted(searches.misses, "failed exec", "failed execs"),
            time(each),
            time(searches.cost),
            directories.join(", ")
        ),
        format!("launched by: {}", parents.join(", ")),
    ]
}
