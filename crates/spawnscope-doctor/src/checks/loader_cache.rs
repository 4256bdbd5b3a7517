//! The dynamic loader's library cache: without it, each program start searches directories. The
//! check does not look for libraries that are newer than the cache, since it could not show what
//! they cost.

use crate::loader::{CACHE, why_cache_is_unusable};
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
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
