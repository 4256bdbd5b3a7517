//! The conditions of a run: the load of the machine, the file system of the lab's files, and what its processes inherit.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use serde::{Deserialize, Serialize};

/// Load averages that differ by at least this much count as different.
const MIN_LOAD_DIFFERENCE: f64 = 1.0;
/// The word for a value that is not known.
pub(super) const UNKNOWN: &str = "unknown";

/// Conditions that may change between two runs on the same machine. Conditions that cannot be determined are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunConditions {
    /// The load average of the last minute before the run.
    #[serde(default)]
    pub load_before: Option<f64>,
    /// The load average of the last minute of the run. It includes the lab's own load.
    #[serde(default)]
    pub load_after: Option<f64>,
    /// The type of the file system with the lab's programs.
    #[serde(default)]
    pub file_system: Option<String>,
    /// The hard limit on open files.
    #[serde(default, rename = "most_open_files")]
    pub max_open_files: Option<u64>,
    /// The file that `/bin/sh` links to.
    #[serde(default)]
    pub sh: Option<String>,
}

impl RunConditions {
    /// Reads the conditions before a run that has its files in `directory`.
    #[must_use]
    pub fn read_before_run(directory: &Path) -> RunConditions {
        RunConditions {
            load_before: read_load(),
            load_after: None,
            file_system: file_system(directory),
            max_open_files: getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard),
            sh: fs::canonicalize("/bin/sh").ok().map(|path| path.to_string_lossy().into_owned()),
        }
    }

    /// Adds the load average after the run.
    pub fn add_load_after(&mut self) {
        self.load_after = read_load();
    }

    /// Returns a sentence with the load averages, if either exceeds the number of CPUs.
    #[must_use]
    pub fn load_warning(&self, cpus: u64) -> Option<String> {
        let is_busy = [self.load_before, self.load_after].map(|load| load.is_some_and(|load| load > cpus as f64));
        let cpus = spawnscope_data::units::counted(cpus, "CPU", "CPUs");
        let [before, after] = [self.load_before, self.load_after].map(load_text);
        match is_busy {
            [false, false] => None,
            [true, _] if self.load_after.is_none() => Some(format!(
                "the machine is busy: load average {before} on {cpus}; times will be longer and less certain than on an idle machine"
            )),
            [true, _] => {
                Some(format!("the machine was busy: load average {before} before and {after} after, on {cpus}"))
            }
            [false, true] => Some(format!(
                "the load average was {before} before and {after} after, on {cpus}: caused by bench itself, or by other processes"
            )),
        }
    }
}

fn load_text(load: Option<f64>) -> String {
    load.map_or(UNKNOWN.to_owned(), |load| format!("{load:.1}"))
}

/// Returns the load averages of two reports as text, or empty texts if they are similar.
#[must_use]
pub(super) fn load_texts(old: Option<f64>, new: Option<f64>) -> [String; 2] {
    let are_alike = match (old, new) {
        (Some(old), Some(new)) => (old - new).abs() < MIN_LOAD_DIFFERENCE,
        (old, new) => old == new,
    };
    if are_alike {
        return Default::default();
    }
    [old, new].map(load_text)
}

fn read_load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Returns the type of the file system that a directory is on, according to its mount.
fn file_system(directory: &Path) -> Option<String> {
    let directory = File::open(directory).ok()?;
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", directory.as_raw_fd())).ok()?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let line = mounts.lines().find(|line| line.split(' ').next() == Some(mount))?;
    // The type follows the dash, see proc_pid_mountinfo(5).
    Some(line.split_once(" - ")?.1.split(' ').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conditions_of_this_process_are_read() {
        let mut found = RunConditions::read_before_run(Path::new("/proc"));
        assert_eq!(found.file_system.as_deref(), Some("proc"));
        assert!(found.load_before.is_some_and(|load| load >= 0.0));
        assert!(found.max_open_files > Some(0));
        assert!(found.sh.as_deref().is_some_and(|path| path.starts_with('/')));
        assert_eq!(found.load_after, None);
        found.add_load_after();
        assert!(found.load_after.is_some());
    }

    #[test]
    fn a_machine_is_busy_if_its_load_exceeds_its_cpus() {
        assert_eq!(warning(2.0, Some(1.9)), "");
        assert!(warning(2.1, None).starts_with("the machine is busy: load average 2.1 on 2 CPUs"));
        assert!(warning(3.0, Some(1.0)).contains("3.0 before and 1.0 after"));
        assert!(warning(0.5, Some(3.0)).contains("0.5 before and 3.0 after"));
        assert_eq!(RunConditions::default().load_warning(2), None, "unknown is not busy");
    }

    fn warning(before: f64, after: Option<f64>) -> String {
        let found = RunConditions { load_before: Some(before), load_after: after, ..RunConditions::default() };
        found.load_warning(2).unwrap_or_default()
    }

    #[test]
    fn loads_that_differ_by_less_than_1_are_alike() {
        assert_eq!(super::load_texts(Some(0.2), Some(1.1)), ["", ""]);
        assert_eq!(super::load_texts(Some(0.2), Some(1.3)), ["0.2", "1.3"]);
        assert_eq!(super::load_texts(None, Some(1.3)), ["unknown", "1.3"]);
    }
}
