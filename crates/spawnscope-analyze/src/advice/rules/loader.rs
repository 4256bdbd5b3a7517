//! Launches that spend much time in the dynamic loader: it searches directories without the libraries, or loads many of them.

use crate::advice::context::{name, time};
use crate::advice::groups::Group;
use crate::advice::{Basis, Finding, RuleContext};
use crate::launch::{Exec, Launch};
use crate::phases::Phase;
use crate::whatif::Fix;
use crate::whatif::changes::{Change, search_share};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Failed searches count as a problem from this share of the load phase.
const LARGE_SEARCH_SHARE: f64 = 0.2;
/// From this number of libraries on, loading itself is the problem.
const MANY: u32 = 12;
/// Loading is the main cost of a launch from this share of it.
const LARGE_SHARE: f64 = 0.3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let searching = context.groups(|_, launch| {
        let failed: f64 = launch.execs.iter().map(failed_search_time).sum();
        let load = launch.phases.get(Phase::Load)?;
        (failed >= LARGE_SEARCH_SHARE * load.0 as f64 && failed > 0.0)
            .then_some((launch.command.name, Nanos(failed as u64)))
    });
    let loading = context.groups(|_, launch| {
        let load = launch.phases.get(Phase::Load)?;
        let is_large = load.0 as f64 >= LARGE_SHARE * launch.total(context.forest().end)?.0 as f64;
        (is_large && libraries(launch) >= MANY).then_some((launch.command.name, load))
    });
    let searching = searching.into_iter().map(|group| astray(context, group));
    let loading = loading.into_iter().map(|group| many(context, group));
    searching.chain(loading).collect()
}

fn failed_search_time(exec: &Exec<'_>) -> f64 {
    exec.load().unwrap_or_default().0 as f64 * search_share(exec)
}

/// Returns the number of libraries that the program of the last exec loads.
fn libraries(launch: &Launch<'_>) -> u32 {
    let opens = launch.execs.last().and_then(|exec| exec.load_opens);
    opens.unwrap_or_default()
}

/// Returns the finding for a loader that searches directories without the libraries.
fn astray(context: &RuleContext<'_, '_>, group: Group<'_>) -> Finding {
    let program = name(group.name);
    let sum = |launch: &Launch<'_>, of: fn(&Exec<'_>) -> Option<u32>| {
        let sum: u32 = launch.execs.iter().filter_map(of).sum();
        Some(f64::from(sum))
    };
    let failed = context.middle(&group.launches, |launch| sum(launch, |exec| exec.load_failed_opens));
    let opened = context.middle(&group.launches, |launch| sum(launch, |exec| exec.load_opens));
    let has_no_cache = |launch: &u32| {
        let execs = &context.launch(*launch).execs;
        execs.iter().any(|exec| exec.load_cache == Some(false))
    };
    let lacks_cache = group.launches.iter().any(has_no_cache);
    let mut evidence = vec![format!(
        "{} of {program}: the loader makes {} failed lookups for {}, which take {} of its {}",
        units::counted(group.launches.len() as u64, "launch", "launches"),
        units::count(failed.unwrap_or_default() as u64),
        units::counted(opened.unwrap_or_default() as u64, "library", "libraries"),
        time(group.at_stake),
        time(context.phase_of(&group.launches, Phase::Load)),
    )];
    if lacks_cache {
        evidence.push("its cache, /etc/ld.so.cache, could not be opened".to_owned());
    }
    Finding {
        rule: "loader-search",
        title: format!("the loader of {program} searches directories that lack the libraries"),
        evidence,
        example: context.example(&group.launches),
        fix: search_fix(&file_of(context, &group), lacks_cache),
        limits: "the time of failed lookups is estimated from their number; on a network file system each takes longer, and more is saved"
            .to_owned(),
        whatif: format!("--no-search={program}"),
        tries: vec![Fix {
            change: Change::NoSearch,
            launches: group.launches.clone(),
        }],
        basis: Basis::Modelled,
        launches: group.launches,
    }
}

/// Returns the executed file as given to exec.
fn file_of(context: &RuleContext<'_, '_>, group: &Group<'_>) -> String {
    let last = context.launch(group.launches[0]).execs.last();
    name(last.map_or(group.name, |exec| exec.path()))
}

fn search_fix(file: &str, lacks_cache: bool) -> Vec<String> {
    let mut fix = Vec::new();
    if lacks_cache {
        fix.push("create the cache: run `ldconfig` as root, or in the image that the program runs in".to_owned());
    }
    fix.extend([
        "list the directories that it searches:".to_owned(),
        format!("  LD_DEBUG=libs {file} 2>&1 | grep 'trying file'"),
        "unset LD_LIBRARY_PATH where it is not needed, or put the directory with the libraries first".to_owned(),
        "system-wide: add the directory to /etc/ld.so.conf.d/ and run `ldconfig`, instead of setting LD_LIBRARY_PATH".to_owned(),
        "check the search list of the program (RPATH, RUNPATH); `patchelf --shrink-rpath FILE` shortens it; with Nix and Spack, \
         `shrinkwrap` replaces each library name by its full path:"
            .to_owned(),
        format!("  readelf -d {file} | grep -E 'RPATH|RUNPATH'"),
    ]);
    fix
}

/// Returns the finding for a program with many libraries.
fn many(context: &RuleContext<'_, '_>, group: Group<'_>) -> Finding {
    let program = name(group.name);
    let opened = context.middle(&group.launches, |launch| Some(f64::from(libraries(launch))));
    Finding {
        rule: "loader",
        title: format!("launches of {program} mostly load libraries"),
        evidence: vec![format!(
            "{} of {program} with {} each: loading them took {} of {} in all",
            units::counted(group.launches.len() as u64, "launch", "launches"),
            units::counted(opened.unwrap_or_default() as u64, "library", "libraries"),
            time(context.phase_of(&group.launches, Phase::Load)),
            time(context.spent_on(&group.launches)),
        )],
        example: context.example(&group.launches),
        fix: vec![
            format!("launch it less often: run one {program} for many inputs, or keep one running"),
            "link it statically, or against fewer libraries: -Wl,--as-needed, and dlopen() for plug-ins on first use"
                .to_owned(),
            "bind symbols lazily: -Wl,-z,lazy, and no LD_BIND_NOW in the environment".to_owned(),
            "or use a smaller program for the same work".to_owned(),
        ],
        limits: "the predicted saving assumes a static program, which is the upper limit; fewer libraries or lazy binding save a part of it"
            .to_owned(),
        whatif: format!("--static={program}"),
        tries: vec![Fix {
            change: Change::Static,
            launches: group.launches.clone(),
        }],
        basis: Basis::Modelled,
        launches: group.launches,
    }
}
