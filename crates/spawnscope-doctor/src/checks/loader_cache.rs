//! Checks whether the dynamic loader's library cache is missing, unreadable, corrupt, or older than libraries. `entries` reads the names in
//! the cache; `library` determines the name under which `ldconfig` would enter a file.

mod entries;
mod library;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Check, Run};
use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "loader-cache",
    examines: "/etc/ld.so.cache: present, readable, newer than libraries",
    run: Run::Reading(run),
};

const CACHE: &str = "/etc/ld.so.cache";
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// Dynamic loaders of glibc. On a machine without one, no program uses the cache.
const LOADERS: [&str; 4] =
    ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-armhf.so.3", "/lib64/ld64.so.2"];
/// Directories that the loader searches by default.
const STANDARD_DIRECTORIES: [&str; 4] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64"];
/// At most this many libraries are listed.
const MAX_NAMED: usize = 3;
/// The time limit for the examination of libraries. If all are newer than the cache, as in unpacked images, there can be thousands.
const TIMEOUT: Duration = Duration::from_millis(150);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(how) = why_unusable(machine) {
        let with = examination.measured.launch.exec_dynamic;
        let without = examination.measured.without_library_search;
        findings.add(unusable_cache_finding(how, with.zip(without)));
        return;
    }
    let missing = MissingLibraries::find(machine, Instant::now() + TIMEOUT);
    for what in missing.not_examined {
        findings.add_not_examined(what);
    }
    if !missing.libraries.is_empty() {
        let count = units::counted(missing.libraries.len() as u64, "library", "libraries");
        let at_least = if missing.is_complete { "" } else { "at least " };
        let named: Vec<String> = missing.libraries.into_values().take(MAX_NAMED).collect();
        findings.add(
            Finding::note(format!("{CACHE} lacks {at_least}{count}"))
                .evidence(format!("newer than the cache and not in it: {}", named.join(", ")))
                .evidence("programs that need them search directories, or fail to find them")
                .fix("  ldconfig    # as root")
                .fix_cost("a second"),
        );
    }
}

/// Returns why the cache is unusable; `None` if it is usable, or if no program needs it.
pub(crate) fn why_unusable(machine: &Machine) -> Option<&'static str> {
    // On NixOS, each program contains the paths of its libraries.
    if machine.exists("/etc/NIXOS") || !LOADERS.iter().any(|loader| machine.exists(loader)) {
        return None;
    }
    let Ok(metadata) = fs::metadata(machine.path(CACHE)) else {
        return Some("is missing");
    };
    if metadata.permissions().mode() & 0o004 == 0 {
        return Some("cannot be read by all users");
    }
    match machine.bytes(CACHE) {
        Err(_) => Some("cannot be read"),
        Ok(cache) if !entries::is_cache(&cache) => Some("is not a cache"),
        Ok(_) => None,
    }
}

/// Returns the finding for an unusable cache. `times` are those of a launch now, and without the library search, if they were measured.
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

/// Libraries that are missing from the cache: files in the loader's directories that are newer than the cache.
struct MissingLibraries {
    /// The path of each library, by the name that `ldconfig` would enter. Several files can have the same name.
    libraries: BTreeMap<Vec<u8>, String>,
    /// Whether all directories were examined in time.
    is_complete: bool,
    not_examined: Vec<String>,
}

impl MissingLibraries {
    fn find(machine: &Machine, until: Instant) -> MissingLibraries {
        let mut missing = MissingLibraries { libraries: BTreeMap::new(), is_complete: true, not_examined: Vec::new() };
        let (Ok(cache), Ok(metadata)) = (machine.bytes(CACHE), fs::metadata(machine.path(CACHE))) else {
            return missing;
        };
        let Some(known) = entries::names(&cache) else {
            missing.not_examined.push(format!("the names in {CACHE}: it is truncated"));
            return missing;
        };
        let made = (metadata.mtime(), metadata.mtime_nsec());
        let standard = STANDARD_DIRECTORIES.map(|directory| (directory.to_owned(), false));
        let configured = configured(machine, CONFIGURATION, 0).into_iter();
        let configured =
            configured.map(|ConfiguredDirectory { directory, file }| (directory, is_newer(machine, &file, made)));
        for (directory, is_newly_configured) in standard.into_iter().chain(configured) {
            if machine.is_left_out(&directory) {
                missing.not_examined.push(format!("libraries in {directory}: it did not answer in time"));
                continue;
            }
            let is_link = fs::symlink_metadata(machine.path(&directory)).is_ok_and(|directory| directory.is_symlink());
            if is_link || !is_newly_configured && !is_newer(machine, &directory, made) {
                continue;
            }
            // If the file that configures this directory is newer than the cache, the cache may contain none of its libraries.
            let is_new = |path: &str| is_newly_configured || is_newer(machine, path, made);
            if !missing.add_new_libraries(machine, &directory, &known, is_new, until) {
                missing.is_complete = false;
                let what = format!("some libraries that are newer than {CACHE}: there are too many for the time limit");
                missing.not_examined.push(what);
                break;
            }
        }
        missing
    }

    /// Adds the new libraries of a directory. Returns `false` if the time was up before the end of the directory.
    fn add_new_libraries(
        &mut self,
        machine: &Machine,
        directory: &str,
        known: &HashSet<&[u8]>,
        is_newer: impl Fn(&str) -> bool,
        until: Instant,
    ) -> bool {
        for name in machine.names(directory) {
            if !name.starts_with("lib") || !name.contains(".so.") || is_known(known, &name) {
                continue;
            }
            if Instant::now() >= until {
                return false;
            }
            let path = format!("{directory}/{name}");
            if is_newer(&path) {
                let entry = library::entry_name(&machine.path(&path));
                if let Some(entry) = entry.filter(|entry| !known.contains(entry.as_slice())) {
                    self.libraries.entry(entry).or_insert(path);
                }
            }
        }
        true
    }
}

fn is_newer(machine: &Machine, path: &str, made: (i64, i64)) -> bool {
    let file = fs::symlink_metadata(machine.path(path));
    file.is_ok_and(|file| (file.ctime(), file.ctime_nsec()) > made)
}

/// Returns the directories in the loader's configuration, which may be on file systems that do not answer.
pub(crate) fn directories(machine: &Machine) -> impl Iterator<Item = PathBuf> {
    let configured = configured(machine, CONFIGURATION, 0).into_iter();
    configured.map(|configured| PathBuf::from(configured.directory))
}

/// A directory, and the configuration file that names it.
struct ConfiguredDirectory {
    directory: String,
    file: String,
}

/// Returns the directories that a configuration file names, including those in the files that it includes.
fn configured(machine: &Machine, file: &str, depth: usize) -> Vec<ConfiguredDirectory> {
    let text = machine.text(file).unwrap_or_default();
    let mut directories = Vec::new();
    for line in text.lines().map(str::trim) {
        match line.strip_prefix("include ") {
            Some(pattern) if depth < 4 => {
                let Some((directory, suffix)) = pattern.trim().rsplit_once("/*") else {
                    continue;
                };
                // A relative pattern is relative to the directory of the file.
                let directory = format!("{}", Path::new(file).with_file_name(directory).display());
                let names = machine.names(&directory).into_iter().filter(|name| name.ends_with(suffix));
                let files = names.map(|name| format!("{directory}/{name}"));
                directories.extend(files.flat_map(|file| configured(machine, &file, depth + 1)));
            }
            None if line.starts_with('/') => directories
                .push(ConfiguredDirectory { directory: line.trim_end_matches('/').to_owned(), file: file.to_owned() }),
            _ => {}
        }
    }
    directories
}

/// Returns whether the cache contains the file's name or a prefix of it, such as `libx.so.1` for `libx.so.1.2.3`. Such a prefix is most
/// likely the library's SONAME, so the file need not be opened.
fn is_known(known: &HashSet<&[u8]>, name: &str) -> bool {
    let mut name = name;
    loop {
        if known.contains(name.as_bytes()) {
            return true;
        }
        match name.rsplit_once('.') {
            Some((shorter, _)) if shorter.contains(".so") => name = shorter,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_reported_as_not_examined_when_the_time_is_up() {
        let root = tempfile::tempdir().unwrap();
        let machine = Machine::with_root(root.path());
        for directory in ["etc", "usr/lib"] {
            fs::create_dir_all(machine.path(directory)).unwrap();
        }
        let cache = [&b"glibc-ld.so.cache1.1"[..], &[0; 28]].concat();
        fs::write(machine.path(CACHE), cache).unwrap();
        let past = fs::File::options().write(true).open(machine.path(CACHE)).unwrap();
        past.set_modified(std::time::UNIX_EPOCH).unwrap();
        fs::write(machine.path("/usr/lib/libnew.so.1"), "").unwrap();
        let found = MissingLibraries::find(&machine, Instant::now() + Duration::from_secs(60));
        assert!(found.is_complete && found.not_examined.is_empty());
        let found = MissingLibraries::find(&machine, Instant::now());
        assert!(!found.is_complete && found.not_examined[0].contains("too many"), "{:?}", found.not_examined);
    }
}
