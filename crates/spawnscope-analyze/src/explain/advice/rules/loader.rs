//! Launches whose dynamic loader searches directories that lack the libraries.

use std::collections::{HashMap, HashSet};
use std::iter::Sum;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::explain::advice::thresholds::Candidate;
use crate::model::launch::{Exec, Launch};
use crate::model::phases::Phase;
use crate::predict::whatif::changes::{Change, search_share};
use crate::predict::whatif::constants::Constants;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Failed lookups are a problem if they take at least this share of the load phase.
const MIN_SEARCH_SHARE: f64 = 0.2;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let constants = context.whatif.constants;
    let search_groups = searching(context);
    let search_candidates = context.candidates(|_, launch| {
        let failed = failed_search_time(launch, constants);
        let is_significant = failed > 0.0 && search_groups.contains(&(launch.command.name, failed_lookups(launch)));
        is_significant.then_some((launch.command.name, Nanos(failed as u64)))
    });
    search_candidates.into_iter().map(|candidate| search_finding(context, candidate)).collect()
}

/// Returns the programs, each with a number of failed lookups, whose failed lookups take a large
/// part of the load phase. Sums are compared, so that one slow launch does not decide.
fn searching<'a>(context: &RuleContext<'_, 'a>) -> HashSet<(&'a [u8], u32)> {
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

/// Returns the finding for a loader that searches directories without the libraries.
fn search_finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let program = name(candidate.name);
    let all = &candidate.launches;
    let failed = context.median_of(all, |launch| Some(f64::from(failed_lookups(launch))));
    let opened = context.median_of(all, |launch| {
        Some(f64::from(sum_over_execs(launch, |exec| exec.load_opens.get().unwrap_or_default())))
    });
    let mut execs = all.iter().flat_map(|launch| &context.launch(*launch).execs);
    let lacks_cache = execs.any(|exec| exec.load_cache == Some(false));
    let file = context.launch(all[0]).execs.last().map_or(candidate.name, Exec::path);
    let file = name(file);
    let evidence = format!(
        "in {} of {program}, the loader makes a median of {} failed lookups for {}; together, the lookups take {} of the {} of the load phase",
        launches(all.len()),
        units::count(failed.unwrap_or_default() as u64),
        libraries_text(opened),
        time(candidate.max_saving),
        time(context.total_phase(all, Phase::Load)),
    );
    let title = format!("the loader of {program} searches directories that lack the libraries");
    Finding::modelled("loader-search", title, candidate.launches)
        .fixed_elsewhere()
        .evidence(evidence)
        .evidence_lines(lacks_cache.then(|| "its cache, /etc/ld.so.cache, could not be opened".to_owned()))
        .with_example(context)
        .recipe("loader-search", &[if lacks_cache { "uncached" } else { "" }], &[("file", &file)])
        .predicted_by(Change::NoSearch, format!("--no-search={program}"))
}

fn sum_over_execs<T: Sum>(launch: &Launch<'_>, value: impl Fn(&Exec<'_>) -> T) -> T {
    launch.execs.iter().map(value).sum()
}

fn libraries_text(count: Option<f64>) -> String {
    units::counted(count.unwrap_or_default() as u64, "library", "libraries")
}
