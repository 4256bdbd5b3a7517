//! Searches in directories that lack what is searched for: those of a launch for its program, along
//! PATH, of which each miss is a failed exec, and those of the dynamic loader for libraries.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::Sum;

use crate::explain::advice::context::{Candidate, MIN_REPETITIONS, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{name, time};
use crate::model::launch::{Exec, Launch};
use crate::model::phases::Phase;
use crate::predict::whatif::changes::{Change, search_share};
use crate::predict::whatif::constants::Constants;
use crate::waits::failed_execs::{PathSearchTally, SearchEnd, attempts_of};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Maximum number of directories, of parents and of programs that are listed.
const MAX_NAMED: usize = 3;
/// Failed lookups of a loader are a problem if they take at least this share of the load phase.
const MIN_SEARCH_SHARE: f64 = 0.2;

pub(super) fn for_programs(context: &RuleContext<'_, '_>) -> Vec<Finding> {
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
        let found = attempts.searches.first().filter(|search| search.end == SearchEnd::Found);
        let Some((search, exec)) = found.zip(launch.execs.first()) else { continue };
        tally.add(search);
        searching.push(index);
        *parents.entry(launch.birth_command.name).or_default() += 1;
        programs.entry(search.program).or_insert((0, exec.path())).0 += 1;
    }
    if searching.len() < MIN_REPETITIONS {
        return Vec::new();
    }
    let searches = tally.finish();
    let lacking = searches.directories.iter().take(MAX_NAMED);
    let lacking: Vec<(u64, &[u8])> = lacking.map(|directory| (directory.misses, &directory.name[..])).collect();
    let parents = most_frequent(parents.into_iter().map(|(parent, count)| (count, parent)));
    let values = [
        ("misses", &units::counted(searches.misses, "failed exec", "failed execs")[..]),
        ("each", &time(Nanos(searches.cost.0 / searches.misses.max(1)))),
        ("cost", &time(searches.cost)),
        ("most", &with_counts(&lacking)),
        ("parents", &with_counts(&parents)),
        ("programs", &names(&most_frequent(programs.into_values()))),
        ("directories", &names(&lacking)),
    ];
    let finding =
        Finding::of(context, "path-search", searching, &[], &values).predicted_by(Change::Absolute, "--absolute='*'");
    vec![finding]
}

/// Returns the names with the highest counts.
fn most_frequent<'a>(counted: impl Iterator<Item = (u64, &'a [u8])>) -> Vec<(u64, &'a [u8])> {
    let mut counted: Vec<_> = counted.collect();
    counted.sort_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    counted.truncate(MAX_NAMED);
    counted
}

fn names(counted: &[(u64, &[u8])]) -> String {
    counted.iter().map(|(_, text)| name(text)).collect::<Vec<_>>().join(", ")
}

fn with_counts(counted: &[(u64, &[u8])]) -> String {
    let counted = counted.iter().map(|(count, text)| format!("{} ({})", name(text), units::count(*count)));
    counted.collect::<Vec<_>>().join(", ")
}

pub(super) fn for_libraries(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let constants = context.whatif.constants;
    let groups = searching_libraries(context);
    let candidates = context.candidates(|_, launch| {
        let failed = failed_search_time(launch, constants);
        let is_significant = failed > 0.0 && groups.contains(&(launch.command.name, failed_lookups(launch)));
        is_significant.then_some((launch.command.name, Nanos(failed as u64)))
    });
    candidates.into_iter().map(|candidate| of_loader(context, candidate)).collect()
}

/// Returns the programs, each with a number of failed lookups, whose failed lookups take a large
/// part of the load phase. Sums are compared, so that one slow launch does not decide.
fn searching_libraries<'a>(context: &RuleContext<'_, 'a>) -> HashSet<(&'a [u8], u32)> {
    let mut sums: HashMap<(&'a [u8], u32), (f64, f64)> = HashMap::new();
    for (_, launch) in context.launched() {
        if let Some(load) = launch.phases.get(Phase::Load) {
            let sum = sums.entry((launch.command.name, failed_lookups(launch))).or_default();
            *sum = (sum.0 + failed_search_time(launch, context.whatif.constants), sum.1 + load.0 as f64);
        }
    }
    sums.retain(|_, (failed, load)| *failed >= MIN_SEARCH_SHARE * *load);
    sums.into_keys().collect()
}

fn failed_search_time(launch: &Launch<'_>, constants: &Constants) -> f64 {
    sum_over_execs(launch, |exec| exec.load().unwrap_or_default().0 as f64 * search_share(exec, constants))
}

fn failed_lookups(launch: &Launch<'_>) -> u32 {
    sum_over_execs(launch, |exec| exec.load_failed_opens.get().unwrap_or_default())
}

fn sum_over_execs<T: Sum>(launch: &Launch<'_>, value: impl Fn(&Exec<'_>) -> T) -> T {
    launch.execs.iter().map(value).sum()
}

/// Returns the finding for a loader that searches directories without the libraries.
fn of_loader(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let Candidate { name: program, launches, max_saving } = candidate;
    let median = |value: &dyn Fn(&Launch<'_>) -> u32| {
        context.median_of(&launches, |launch| Some(f64::from(value(launch)))).unwrap_or_default() as u64
    };
    let opened = median(&|launch| sum_over_execs(launch, |exec| exec.load_opens.get().unwrap_or_default()));
    let mut execs = launches.iter().flat_map(|launch| &context.launch(*launch).execs);
    let lacks_cache = execs.any(|exec| exec.load_cache == Some(false));
    let values = [
        ("failed", &units::count(median(&failed_lookups))[..]),
        ("libraries", &units::counted(opened, "library", "libraries")),
        ("took", &time(max_saving)),
        ("loading", &time(context.total_phase(&launches, Phase::Load))),
        ("file", &name(context.launch(launches[0]).execs.last().map_or(program, Exec::path))),
    ];
    let cases = [if lacks_cache { "uncached" } else { "" }];
    Finding::of(context, "loader-search", launches, &cases, &values)
        .predicted_by(Change::NoSearch, format!("--no-search={}", name(program)))
}
