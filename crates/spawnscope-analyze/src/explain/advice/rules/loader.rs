//! Launches that spend much time in the dynamic loader, because it searches directories that lack
//! the libraries, or because it loads many libraries.

use std::collections::{HashMap, HashSet};
use std::iter::Sum;

use crate::explain::advice::candidates::Candidate;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::model::launch::{Exec, Launch};
use crate::model::phases::Phase;
use crate::predict::whatif::changes::{Change, search_share};
use crate::predict::whatif::constants::Constants;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Failed lookups are a problem if they take at least this share of the load phase.
const MIN_SEARCH_SHARE: f64 = 0.2;
/// Minimum number of libraries of a program whose loading is reported.
const MIN_LIBRARIES: u32 = 12;
/// Loading is reported if it takes at least this share of the launches' wall time.
const MIN_LOAD_SHARE: f64 = 0.3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let constants = context.whatif.constants;
    let search_groups = groups_above_share(context, failed_lookups, MIN_SEARCH_SHARE, |launch| {
        Some((failed_search_time(launch, constants), launch.phases.get(Phase::Load)?.0 as f64))
    });
    let search_candidates = context.candidates(|_, launch| {
        let failed = failed_search_time(launch, constants);
        let is_significant = failed > 0.0 && search_groups.contains(&(launch.command.name, failed_lookups(launch)));
        is_significant.then_some((launch.command.name, Nanos(failed as u64)))
    });
    let end = context.forest().end;
    let load_groups = groups_above_share(context, libraries, MIN_LOAD_SHARE, |launch| {
        Some((launch.phases.get(Phase::Load)?.0 as f64, launch.total(end)?.0 as f64))
    });
    let load_candidates = context.candidates(|_, launch| {
        let is_significant =
            libraries(launch) >= MIN_LIBRARIES && load_groups.contains(&(launch.command.name, libraries(launch)));
        launch.phases.get(Phase::Load).filter(|_| is_significant).map(|load| (launch.command.name, load))
    });
    let search_findings = search_candidates.into_iter().map(|candidate| search_finding(context, candidate));
    let load_findings = load_candidates.into_iter().map(|candidate| libraries_finding(context, candidate));
    search_findings.chain(load_findings).collect()
}

/// Groups launches by program and by `count`. Returns the groups in which the parts make up at
/// least `share` of the wholes. Sums over groups are compared, so that one slow launch does not
/// decide.
fn groups_above_share<'a>(
    context: &RuleContext<'_, 'a>,
    count: impl Fn(&Launch<'a>) -> u32,
    share: f64,
    part_and_whole: impl Fn(&Launch<'a>) -> Option<(f64, f64)>,
) -> HashSet<(&'a [u8], u32)> {
    let mut sums: HashMap<(&'a [u8], u32), (f64, f64)> = HashMap::new();
    for (_, launch) in context.launched() {
        let Some((part, whole)) = part_and_whole(launch) else {
            continue;
        };
        let sum = sums.entry((launch.command.name, count(launch))).or_default();
        *sum = (sum.0 + part, sum.1 + whole);
    }
    sums.retain(|_, (part, whole)| *part >= share * *whole);
    sums.into_keys().collect()
}

fn failed_search_time(launch: &Launch<'_>, constants: &Constants) -> f64 {
    sum_over_execs(launch, |exec| exec.load().unwrap_or_default().0 as f64 * search_share(exec, constants))
}

fn failed_lookups(launch: &Launch<'_>) -> u32 {
    sum_over_execs(launch, |exec| exec.load_failed_opens.unwrap_or_default())
}

/// Returns the number of libraries that the program of the last exec loads.
fn libraries(launch: &Launch<'_>) -> u32 {
    let opens = launch.execs.last().and_then(|exec| exec.load_opens);
    opens.unwrap_or_default()
}

/// Returns the finding for a loader that searches directories without the libraries.
fn search_finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let program = name(candidate.name);
    let all = &candidate.launches;
    let failed = context.median_of(all, |launch| Some(f64::from(failed_lookups(launch))));
    let opened = context
        .median_of(all, |launch| Some(f64::from(sum_over_execs(launch, |exec| exec.load_opens.unwrap_or_default()))));
    let mut execs = all.iter().flat_map(|launch| &context.launch(*launch).execs);
    let lacks_cache = execs.any(|exec| exec.load_cache == Some(false));
    let file = context.launch(all[0]).execs.last().map_or(candidate.name, Exec::path);
    let fix = search_fix(&name(file), lacks_cache);
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
        .fix_lines(fix)
        .limits(
            "the time of failed lookups is estimated from their number; on a network file system each takes longer, and more is saved",
        )
        .predicted_by(Change::NoSearch, format!("--no-search={program}"))
}

fn sum_over_execs<T: Sum>(launch: &Launch<'_>, value: impl Fn(&Exec<'_>) -> T) -> T {
    launch.execs.iter().map(value).sum()
}

fn libraries_text(count: Option<f64>) -> String {
    units::counted(count.unwrap_or_default() as u64, "library", "libraries")
}

fn search_fix(file: &str, lacks_cache: bool) -> impl Iterator<Item = String> + use<> {
    let cache = lacks_cache
        .then(|| "create the cache: run `ldconfig` as root, or in the image that the program runs in".to_owned());
    cache.into_iter().chain([
        "list the directories that it searches:".to_owned(),
        format!("  LD_DEBUG=libs {file} 2>&1 | grep 'trying file'"),
        "unset LD_LIBRARY_PATH if it is not needed, or put the directory with the libraries first".to_owned(),
        "system-wide: add the directory to /etc/ld.so.conf.d/ and run `ldconfig`, instead of setting LD_LIBRARY_PATH".to_owned(),
        "check the search list of the program (RPATH, RUNPATH); `patchelf --shrink-rpath FILE` shortens it; with Nix and Spack, \
         `shrinkwrap` replaces each library name with its full path:"
            .to_owned(),
        format!("  readelf -d {file} | grep -E 'RPATH|RUNPATH'"),
    ])
}

/// Returns the finding for a program with many libraries.
fn libraries_finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let program = name(candidate.name);
    let all = &candidate.launches;
    let opened = context.median_of(all, |launch| Some(f64::from(libraries(launch))));
    let evidence = format!(
        "{} of {program} with a median of {}: loading them took {} of {} in all",
        launches(all.len()),
        libraries_text(opened),
        time(context.total_phase(all, Phase::Load)),
        time(context.spent_on(all)),
    );
    let title = format!("launches of {program} spend much of their time loading libraries");
    Finding::modelled("loader", title, candidate.launches)
        .fixed_elsewhere()
        .evidence(evidence)
        .with_example(context)
        .fix(format!("launch it less often: run one {program} for many inputs, or keep one running"))
        .fix("link it statically, or against fewer libraries: -Wl,--as-needed, and dlopen() for plug-ins on first use")
        .fix("bind symbols lazily: -Wl,-z,lazy, and no LD_BIND_NOW in the environment")
        .fix("or use a smaller program for the same work")
        .limits("the predicted saving assumes a static program, which is the upper limit; fewer libraries or lazy binding save only part of it")
        .predicted_by(Change::Static, format!("--static={program}"))
}
