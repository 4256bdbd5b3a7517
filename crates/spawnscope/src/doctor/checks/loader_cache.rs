//! The dynamic loader's cache of where libraries are: missing, unreadable, damaged, or older than libraries.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;

use super::Check;
use crate::doctor::{Examination, Finding, Findings, Machine};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "loader-cache",
    looks_at: "/etc/ld.so.cache: there, readable, and newer than libraries",
    run,
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
    // There, each program names the places of its libraries itself.
    if machine.exists("/etc/NIXOS") || !LOADERS.iter().any(|loader| machine.exists(loader)) {
        return;
    }
    let Ok(metadata) = fs::metadata(machine.path(CACHE)) else {
        findings.add(broken("is missing"));
        return;
    };
    if metadata.permissions().mode() & 0o004 == 0 {
        findings.add(broken("can be read by its owner only"));
        return;
    }
    let Ok(cache) = machine.bytes(CACHE) else {
        findings.add(broken("cannot be read"));
        return;
    };
    if !BEGINNINGS.iter().any(|beginning| cache.starts_with(beginning)) {
        findings.add(broken("is not a cache"));
        return;
    }
    let unknown = newer_libraries(machine, &cache, metadata.mtime());
    if !unknown.is_empty() {
        let count = units::counted(unknown.len() as u64, "library", "libraries");
        let named: Vec<String> = unknown.into_iter().take(MOST_NAMED).collect();
        findings.add(
            Finding::note(format!("{CACHE} does not know {count}"))
                .evidence(format!("newer than the cache, and not in it: {}", named.join(", ")))
                .evidence("programs that want them search directories, or do not find them")
                .fix("  sudo ldconfig")
                .fix_cost("a second"),
        );
    }
}

fn broken(how: &str) -> Finding {
    Finding::problem(format!(
        "{CACHE} {how}: each start of a program searches directories for its libraries"
    ))
    .evidence("the loader then tries each directory it knows, and the subdirectories for kinds of processors")
    .fix("  sudo ldconfig && sudo chmod 644 /etc/ld.so.cache")
    .fix_cost("a second; in an image of a container a layer of some 10 to 100 kB")
}

/// Libraries in directories of the cache that came after it, and that it does not name.
fn newer_libraries(machine: &Machine, cache: &[u8], made: i64) -> Vec<String> {
    let mut directories: Vec<String> = STANDARD.map(str::to_owned).to_vec();
    directories.extend(configured(machine, "/etc/ld.so.conf", 0));
    let mut newer: Vec<String> = Vec::new();
    for directory in directories {
        let is_newer = |path: &str| fs::symlink_metadata(machine.path(path)).is_ok_and(|file| file.ctime() > made);
        let is_link = fs::symlink_metadata(machine.path(&directory)).is_ok_and(|directory| directory.is_symlink());
        if is_link || !is_newer(&directory) {
            continue;
        }
        let names = machine
            .names(&directory)
            .into_iter()
            .filter(|name| name.starts_with("lib") && name.contains(".so."));
        let unknown = names.filter(|name| is_newer(&format!("{directory}/{name}")) && !is_known(cache, name));
        newer.extend(unknown.map(|name| format!("{directory}/{name}")));
    }
    newer.sort();
    newer.dedup();
    newer
}

/// The directories that a configuration names, with those of the files it includes.
fn configured(machine: &Machine, file: &str, depth: usize) -> Vec<String> {
    let text = machine.text(file).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < 4 => {
                let Some((folder, suffix)) = pattern.trim().rsplit_once("/*") else {
                    continue;
                };
                let names = machine.names(folder).into_iter().filter(|name| name.ends_with(suffix));
                directories.extend(names.flat_map(|name| configured(machine, &format!("{folder}/{name}"), depth + 1)));
            }
            None if line.starts_with('/') => directories.push(line.trim_end_matches('/').to_owned()),
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
