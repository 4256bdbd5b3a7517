//! Launches that the dynamic loader takes a large part of: it looks for libraries where they are not, or there are many of them.

use super::super::context::{name, time};
use super::super::groups::Group;
use super::super::{Basis, Finding, RuleContext};
use crate::analyze::launch::{Exec, Launch};
use crate::analyze::phases::Phase;
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::{Change, search_share};
use crate::event::Nanos;
use crate::units;

/// A loader that spends this share of its time on looking in vain is led astray.
const ASTRAY: f64 = 0.2;
/// So many libraries are many.
const MANY: u32 = 12;
/// Loading is what a launch is spent on when it takes this share of it.
const LARGE_SHARE: f64 = 0.3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let searching = context.groups(|_, launch| {
        let in_vain: f64 = launch.execs.iter().map(time_in_vain).sum();
        let load = launch.phases.get(Phase::Load)?;
        (in_vain >= ASTRAY * load.0 as f64 && in_vain > 0.0).then_some((launch.command.name, Nanos(in_vain as u64)))
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

fn time_in_vain(exec: &Exec<'_>) -> f64 {
    exec.load().unwrap_or_default().0 as f64 * search_share(exec)
}

/// Libraries that the program of the last exec loads.
fn libraries(launch: &Launch<'_>) -> u32 {
    let opens = launch.execs.last().and_then(|exec| exec.load_opens);
    opens.unwrap_or_default()
}

/// The loader looks for libraries in directories that do not have them.
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
        "{} of {program}: the loader looks {} times in vain to find {}, {} of its {}",
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
        title: format!("the loader of {program} looks for libraries where they are not"),
        evidence,
        example: context.example(&group.launches),
        fix: search_fix(&file_of(context, &group), lacks_cache),
        limits: "how long looking in vain takes is estimated from the number of looks; on a network file system each takes longer, \
                 so that more is saved"
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

/// The file that is executed, as it was given.
fn file_of(context: &RuleContext<'_, '_>, group: &Group<'_>) -> String {
    let last = context.launch(group.launches[0]).execs.last();
    name(last.map_or(group.name, |exec| exec.path()))
}

fn search_fix(file: &str, lacks_cache: bool) -> Vec<String> {
    let mut fix = Vec::new();
    if lacks_cache {
        fix.push("make the cache: `ldconfig` as root, or in the image that the program runs in".to_owned());
    }
    fix.extend([
        "see where it looks:".to_owned(),
        format!("  LD_DEBUG=libs {file} 2>&1 | grep 'trying file'"),
        "unset LD_LIBRARY_PATH where it is not needed, or put the directory that has the libraries first".to_owned(),
        "system-wide: name the directory in /etc/ld.so.conf.d/ and run `ldconfig`, rather than setting LD_LIBRARY_PATH".to_owned(),
        "the program's own list (RPATH, RUNPATH); `patchelf --shrink-rpath FILE` shortens it; with Nix and Spack, `shrinkwrap` gives \
         each library its full path:"
            .to_owned(),
        format!("  readelf -d {file} | grep -E 'RPATH|RUNPATH'"),
    ]);
    fix
}

/// There are many libraries, each found at once.
fn many(context: &RuleContext<'_, '_>, group: Group<'_>) -> Finding {
    let program = name(group.name);
    let opened = context.middle(&group.launches, |launch| Some(f64::from(libraries(launch))));
    Finding {
        rule: "loader",
        title: format!("{program} spends its launches on loading many libraries"),
        evidence: vec![format!(
            "{} of {program} with {} each: loading them took {} of {} in all",
            units::counted(group.launches.len() as u64, "launch", "launches"),
            units::counted(opened.unwrap_or_default() as u64, "library", "libraries"),
            time(context.phase_of(&group.launches, Phase::Load)),
            time(context.spent_on(&group.launches)),
        )],
        example: context.example(&group.launches),
        fix: vec![
            format!("launch it less often: one {program} for many inputs, or one that keeps running"),
            "link it statically, or against fewer libraries: -Wl,--as-needed, plug-ins by dlopen() only when they are used"
                .to_owned(),
            "with symbols bound when they are first called: -Wl,-z,lazy, no LD_BIND_NOW in the environment".to_owned(),
            "or take a smaller program for the same work".to_owned(),
        ],
        limits: "the saving is that of a static program, the most that there is; fewer libraries or lazy binding save a part of it"
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
