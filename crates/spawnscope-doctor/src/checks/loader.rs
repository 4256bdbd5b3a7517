//! What slows down the dynamic loader: a library cache that is missing or unusable, without which
//! each program start searches directories, and extra work that environment variables or
//! /etc/ld.so.preload request.
//!
//! The check of the cache does not look for libraries that are newer than it, since it could not
//! show what they cost.

use std::path::Path;

use super::without_secrets;
use crate::loader::{CACHE, VARIABLES, paths, variables, why_cache_is_unusable};
use crate::programs::RunTime;
use crate::{Effect, Examination, Finding, Findings, Machine, Measured};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) fn run_cache(examination: &Examination<'_>, findings: &mut Findings) {
    if let Some(how) = why_cache_is_unusable(examination.machine) {
        let with = examination.measured.launch.exec_dynamic;
        let without = examination.measured.without_library_search;
        findings.add(unusable_cache_finding(how, with.zip(without)));
    }
}

/// Returns the finding for an unusable cache. `times` are those of a launch now, and without the
/// library search, if they were measured.
fn unusable_cache_finding(how: &str, times: Option<(Nanos, Nanos)>) -> Finding {
    let evidence = times.map(|(with, without)| {
        let (with, without) = (units::time(with), units::time(without));
        format!("`true` takes {with}, or {without} if its only library is given by path")
    });
    // If the loader searches only a few directories, the time can be within the noise.
    let longer = times.filter(|(with, without)| with > without);
    let search = longer.map(|(with, without)| Effect::measured(with.since(without), "each library of each launch"));
    Finding::problem(format!("{CACHE} {how}: each program start searches directories for libraries"))
        .evidence("the loader tries each default directory and its subdirectories for processor types")
        .evidence_if(evidence)
        .effect(search)
        .fix("run this as root; for a container, in the build of its image:")
        .fix("  ldconfig && chmod 644 /etc/ld.so.cache")
        .fix_cost("a second; in a container image, a layer of about 10 to 100 kB")
}

const PRELOAD_FILE: &str = "/etc/ld.so.preload";
/// Variables that add this much to a launch are a problem.
const MIN_PROBLEM: Nanos = Nanos(50_000);

pub(super) fn run_environment(examination: &Examination<'_>, findings: &mut Findings) {
    check_preload_file(examination.machine, findings);
    let set: Vec<(&str, String)> = variables(examination.machine).collect();
    if !set.is_empty() {
        findings.add(variables_finding(examination, &set));
    }
}

fn variables_finding(examination: &Examination<'_>, set: &[(&str, String)]) -> Finding {
    let machine = examination.machine;
    let with = time_with_variables(examination.measured);
    let times = with.zip(examination.measured.without_loader_variables);
    let more = times.map(|(with, without)| with.excess_over(without));
    let missing: Vec<String> = set.iter().flat_map(|(name, value)| missing_paths(machine, name, value)).collect();
    let faults = [(!missing.is_empty()).then(|| format!("missing: {}", missing.join(", "))), relative_directory(set)];
    let matters = faults.iter().any(Option::is_some) || more.is_some_and(|more| more.time >= MIN_PROBLEM);
    let names = set.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let changes = if set.len() == 1 { "changes" } else { "change" };
    let mut finding = Finding::problem_if(matters, format!("{names} {changes} each start of a program"))
        .effect(more.map(|more| more.effect("each launch of a dynamic program")));
    for (name, value) in set {
        let meaning = VARIABLES.iter().find(|(variable, _)| variable == name).map_or("", |(_, meaning)| *meaning);
        finding = finding.evidence(format!("{name}={}: {meaning}", without_secrets(value)));
    }
    faults
        .into_iter()
        .fold(finding, Finding::evidence_if)
        .evidence_if(
            times.map(|(with, without)| format!("`true` takes {with} with {names}, {} without", units::time(without))),
        )
        .fix("find out what sets them: a start-up file, a module system, a wrapper script")
        .fix("set them only for the program that needs them (`LD_PRELOAD=... program`), not for the whole environment")
        .fix("instead of LD_LIBRARY_PATH, use a line in /etc/ld.so.conf.d and ldconfig, or an rpath in the program")
        .fix_cost("each program that needs the variables must then be given them separately")
}

/// Returns evidence if LD_LIBRARY_PATH depends on the working directory. An empty entry means the
/// working directory.
fn relative_directory(set: &[(&str, String)]) -> Option<String> {
    let (_, value) = set.iter().find(|(name, _)| *name == "LD_LIBRARY_PATH")?;
    value.split([':', ';']).any(|path| !Path::new(path).is_absolute() && !path.starts_with('$')).then(|| {
        "LD_LIBRARY_PATH has an empty or relative entry: libraries in the working directory are loaded".to_owned()
    })
}

/// Returns the time of a dynamic program in the user's environment, which includes the variables.
fn time_with_variables(measured: &Measured) -> Option<RunTime> {
    let completed = measured.launch.exec_dynamic.map(|time| RunTime { time, is_lower_bound: false });
    let abandoned = measured.exec_dynamic_abandoned_after.map(|time| RunTime { time, is_lower_bound: true });
    completed.or(abandoned)
}

/// Checks /etc/ld.so.preload, which lists libraries for all programs; `#` starts a comment.
fn check_preload_file(machine: &Machine, findings: &mut Findings) {
    let text = machine.text(PRELOAD_FILE).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split('#').next());
    let named: Vec<&str> =
        lines.flat_map(|line| line.split([' ', ':', '\t'])).filter(|name| !name.is_empty()).collect();
    if named.is_empty() {
        return;
    }
    let missing = named.iter().copied().filter(|library| library.starts_with('/') && !machine.exists(library));
    let missing: Vec<&str> = missing.collect();
    let libraries = if named.len() == 1 { "a library" } else { "libraries" };
    let finding = Finding::problem(format!("{PRELOAD_FILE} adds {libraries} to each program of this machine"))
        .evidence(format!("it names {}", named.join(", ")))
        .evidence_if(
            (!missing.is_empty())
                .then(|| format!("missing: {}; each start searches for it and fails", missing.join(", "))),
        )
        .fix("before changing it, find out who installed it: monitoring products, security products and rootkits use this file")
        .fix_cost("the function of each removed library is lost");
    findings.add(finding);
}

/// Returns the files and directories that a variable names but that do not exist. A directory that
/// does not answer may exist.
fn missing_paths(machine: &Machine, name: &str, value: &str) -> Vec<String> {
    paths(name, value).filter(|path| !machine.exists(path) && !machine.is_left_out(path)).map(str::to_owned).collect()
}
