//! The dynamic loader's cache of where libraries are: missing, unreadable, damaged, or older than libraries.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;

use super::{Check, Run};
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "loader-cache",
    looks_at: "/etc/ld.so.cache: there, readable, and newer than libraries",
    run: Run::Looking(run),
};

const CACHE: &str = "/etc/ld.so.cache";
/// How the file begins, in its new form and in the old one.
const BEGINNINGS: [&[u8]; 2] = [b"glibc-ld.so.cache1.1", b"ld.so-1.7.0"];
/// Dynamic loaders of glibc: without one, nobody wants the cache.
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-linux-armhf.so.3",
    "/lib64/ld64.so.2",
];
/// Directories that the loader knows without a configuration.
const STANDARD: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
const MOST_NAMED: usize = 3;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(how) = what_is_wrong(machine) {
        let with = examination.measured.launch.exec_dynamic;
        let without = examination.measured.without_library_search;
        findings.add(broken(how, with.zip(without)));
        return;
    }
    let unknown = newer_libraries(machine);
    if !unknown.is_empty() {
        let count = units::counted(unknown.len() as u64, "library", "libraries");
        let named: Vec<String> = unknown.into_iter().take(MOST_NAMED).collect();
        findings.add(
            Finding::note(format!("{CACHE} does not know {count}"))
                .evidence(format!("newer than the cache, and not in it: {}", named.join(", ")))
                .evidence("programs that want them search directories, or do not find them")
                .fix("  ldconfig    # as root")
                .fix_cost("a second"),
        );
    }
}

/// Why the cache is of no use; `None` where it is, and where nobody wants it.
pub(in crate::doctor) fn what_is_wrong(machine: &Machine) -> Option<&'static str> {
    // There, each program names the places of its libraries itself.
    if machine.exists("/etc/NIXOS") || !LOADERS.iter().any(|loader| machine.exists(loader)) {
        return None;
    }
    let Ok(metadata) = fs::metadata(machine.path(CACHE)) else {
        return Some("is missing");
    };
    if metadata.permissions().mode() & 0o004 == 0 {
        return Some("cannot be read by everyone");
    }
    match machine.bytes(CACHE) {
        Err(_) => Some("cannot be read"),
        Ok(cache) if !BEGINNINGS.iter().any(|beginning| cache.starts_with(beginning)) => Some("is not a cache"),
        Ok(_) => None,
    }
}

/// With what a launch takes now and without the search, where that could be measured.
fn broken(how: &str, times: Option<(Nanos, Nanos)>) -> Finding {
    let told = times.map(|(with, without)| {
        let (with, without) = (units::time(with), units::time(without));
        format!("`true` takes {with}, and {without} when its one library is named by its path")
    });
    // A search of few directories can be less than the noise.
    let longer = times.filter(|(with, without)| with > without);
    let search = longer.map(|(with, without)| Effect::measured(with.since(without), "each library of each launch"));
    Finding::problem(format!(
        "{CACHE} {how}: each start of a program searches directories for its libraries"
    ))
    .evidence("the loader then tries each directory it knows, and the subdirectories for kinds of processors")
    .evidence_if(told)
    .effect(search)
    .fix("as root, and in a container when its image is made:")
    .fix("  ldconfig && chmod 644 /etc/ld.so.cache")
    .fix_cost("a second; in an image of a container a layer of some 10 to 100 kB")
}

/// Libraries in directories of the cache that came after it, and that it does not name.
fn newer_libraries(machine: &Machine) -> Vec<String> {
    let (Ok(cache), Ok(metadata)) = (machine.bytes(CACHE), fs::metadata(machine.path(CACHE))) else {
        return Vec::new();
    };
    let made = (metadata.mtime(), metadata.mtime_nsec());
    let is_newer = |path: &str| {
        let file = fs::symlink_metadata(machine.path(path));
        file.is_ok_and(|file| (file.ctime(), file.ctime_nsec()) > made)
    };
    let standard = STANDARD.map(|directory| (directory.to_owned(), false));
    let mut directories = standard.to_vec();
    directories.extend(configured(machine, "/etc/ld.so.conf", 0, &is_newer));
    let mut newer: Vec<String> = Vec::new();
    for (directory, is_new) in directories {
        let is_link = fs::symlink_metadata(machine.path(&directory)).is_ok_and(|directory| directory.is_symlink());
        if is_link || !is_new && !is_newer(&directory) {
            continue;
        }
        // Of a directory that the configuration did not have, all are unknown.
        let is_newer = |path: &str| is_new || is_newer(path);
        let names = machine
            .names(&directory)
            .into_iter()
            .filter(|name| name.starts_with("lib") && name.contains(".so."));
        let unknown = names.filter(|name| is_newer(&format!("{directory}/{name}")) && !is_known(&cache, name));
        newer.extend(unknown.map(|name| format!("{directory}/{name}")));
    }
    newer.sort();
    newer.dedup();
    newer
}

/// The directories that a configuration names, with those of the files it includes, and whether the file is newer than the cache.
fn configured(machine: &Machine, file: &str, depth: usize, is_newer: &impl Fn(&str) -> bool) -> Vec<(String, bool)> {
    let text = machine.text(file).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < 4 => {
                let Some((folder, suffix)) = pattern.trim().rsplit_once("/*") else {
                    continue;
                };
                let names = machine.names(folder).into_iter().filter(|name| name.ends_with(suffix));
                let files = names.map(|name| format!("{folder}/{name}"));
                directories.extend(files.flat_map(|file| configured(machine, &file, depth + 1, is_newer)));
            }
            None if line.starts_with('/') => {
                directories.push((line.trim_end_matches('/').to_owned(), is_newer(file)));
            }
            _ => {}
        }
    }
    directories
}

/// Whether the cache names the library, by its file name or by a shorter one: `libx.so.1` for `libx.so.1.2.3`.
fn is_known(cache: &[u8], name: &str) -> bool {
    let mut name = name;
    loop {
        let wanted = [name.as_bytes(), b"\0"].concat();
        if cache.windows(wanted.len()).any(|part| part == wanted) {
            return true;
        }
        match name.rsplit_once('.') {
            Some((shorter, _)) if shorter.contains(".so") => name = shorter,
            _ => return false,
        }
    }
}
