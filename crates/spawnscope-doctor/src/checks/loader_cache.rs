//! The dynamic loader's library cache: without it, each program start searches directories.
//! Libraries that are newer than the cache are not looked for, since what they cost cannot be
//! shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

const CACHE: &str = "/etc/ld.so.cache";
/// What the cache starts with, in glibc's new and old format (`dl-cache.h`).
const MAGICS: [&[u8]; 2] = [b"glibc-ld.so.cache1.1", b"ld.so-1.7.0"];
/// Dynamic loaders of glibc. On a machine without one, no program uses the cache.
const LOADERS: [&str; 4] =
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-armhf.so.3", "/lib64/ld64.so.2"];

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    if let Some(how) = why_unusable(examination.machine) {
        let with = examination.measured.launch.exec_dynamic;
        let without = examination.measured.without_library_search;
        findings.add(unusable_cache_finding(how, with.zip(without)));
    }
}

/// Returns why the cache is unusable; `None` if it is usable, or if no program needs it.
pub(crate) fn why_unusable(machine: &Machine) -> Option<&'static str> {
    // On NixOS, each program contains the paths of its libraries.
    if machine.exists("/etc/NIXOS") || !LOADERS.iter().any(|loader| machine.exists(loader)) {
        return None;
    }
    let Ok(metadata) = fs::metadata(machine.path(CACHE)) else { return Some("is missing") };
    if metadata.permissions().mode() & 0o004 == 0 {
        return Some("cannot be read by all users");
    }
    match machine.bytes(CACHE) {
        Err(_) => Some("cannot be read"),
        Ok(cache) if !MAGICS.iter().any(|magic| cache.starts_with(magic)) => Some("is not a cache"),
        Ok(_) => None,
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
        .fix("as root; for a container, when its image is built:")
        .fix("  ldconfig && chmod 644 /etc/ld.so.cache")
        .fix_cost("a second; in a container image, a layer of about 10 to 100 kB")
}
