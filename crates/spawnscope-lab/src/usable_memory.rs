//! Determines how much memory parents may use: the free memory of the machine, limited by control
//! groups and by what one process may map.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use spawnscope_system::control_groups::directories;
use spawnscope_system::procfs;

/// The share of the available memory that may be used.
const USABLE_SHARE: f64 = 0.7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableMemory {
    pub total: u64,
    pub per_process: u64,
}

impl AvailableMemory {
    /// Returns the memory that is available now; unlimited if nothing is known about it.
    pub fn now() -> AvailableMemory {
        let address_space = getrlimit(Resource::RLIMIT_AS).map_or(u64::MAX, |(soft, _)| soft);
        AvailableMemory::read(Path::new("/"), address_space)
    }

    fn read(root: &Path, address_space: u64) -> AvailableMemory {
        let free = meminfo(root, "MemAvailable");
        let groups = tightest_limit(root).map(|limit| limit.left);
        let total = groups.into_iter().chain(free).min().map_or(u64::MAX, usable);
        let per_process = match address_space {
            u64::MAX => u64::MAX,
            limit => usable(limit.saturating_sub(mapped_bytes(root))),
        };
        AvailableMemory { total, per_process }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    pub directory: PathBuf,
    pub left: u64,
}

/// Returns, among this process's control group and its ancestors, the group whose limit leaves the
/// least memory; `None` if none has a limit.
pub fn group_limit() -> Option<GroupLimit> {
    tightest_limit(Path::new("/"))
}

fn tightest_limit(root: &Path) -> Option<GroupLimit> {
    let limits = directories(root, "self", "memory").into_iter().filter_map(|directory| {
        let left = bytes_left(&directory)?;
        Some(GroupLimit { directory, left })
    });
    limits.min_by_key(|limit| limit.left)
}

fn usable(bytes: u64) -> u64 {
    (USABLE_SHARE * bytes as f64) as u64
}

pub(super) fn meminfo(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    procfs::field_bytes(&text, name)
}

/// Returns the size of this process's address space. A worker runs the same program, and starts
/// with the same size.
fn mapped_bytes(root: &Path) -> u64 {
    let text = fs::read_to_string(root.join("proc/self/statm")).unwrap_or_default();
    let pages = text.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

/// Returns the bytes that remain until a group's limit. Inactive file pages count as free, because
/// the kernel reclaims them first.
fn bytes_left(directory: &Path) -> Option<u64> {
    let limits = ["memory.max", "memory.high", "memory.limit_in_bytes"].map(|name| read_number(directory, name));
    let limit = limits.into_iter().flatten().min()?;
    let used = read_number(directory, "memory.current").or_else(|| read_number(directory, "memory.usage_in_bytes"))?;
    let statistics = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let cached = ["total_inactive_file ", "inactive_file "].into_iter().find_map(|name| {
        let line = statistics.lines().find_map(|line| line.strip_prefix(name))?;
        line.parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or_default())))
}

fn read_number(directory: &Path, name: &str) -> Option<u64> {
    fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// Returns the root directory of a machine with 1000 MB of available memory and with these
    /// files.
    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let free = format!("MemTotal: 9000000 kB\nMemAvailable: {} kB\n", 1000 * MB / 1024);
        for (name, text) in [("proc/meminfo", free.as_str())].iter().chain(files) {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[track_caller]
    fn assert_available(files: &[(&str, &str)], mb: u64) {
        let available = AvailableMemory::read(machine(files).path(), u64::MAX);
        assert_eq!((available.total + 1000) / MB, mb * 7 / 10, "{available:?}");
        assert_eq!(available.per_process, u64::MAX);
    }

    #[test]
    fn without_limits_the_available_memory_of_the_machine_counts() {
        assert_available(&[("proc/self/cgroup", "0::/user\n")], 1000);
        assert_available(&[("proc/self/cgroup", "0::/user\n"), ("sys/fs/cgroup/user/memory.max", "max\n")], 1000);
        let nothing_known = tempfile::tempdir().unwrap();
        assert_eq!(AvailableMemory::read(nothing_known.path(), u64::MAX).total, u64::MAX);
    }

    #[test]
    fn the_limit_of_an_ancestor_group_counts_less_its_usage() {
        assert_available(
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/memory.max", "700000000\n"),
                ("sys/fs/cgroup/a/memory.current", "300000000\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 200000000\ninactive_file 100000000\n"),
            ],
            500,
        );
    }

    #[test]
    fn cgroup_v1_and_group_names_from_outside_a_container_are_understood() {
        assert_available(
            &[
                ("proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/0123\n0::/\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "400000000\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000000\n"),
                ("sys/fs/cgroup/cpu/memory.max", "1\n"),
            ],
            300,
        );
    }

    #[test]
    fn the_address_space_limit_applies_to_each_process() {
        let pages = 100 * MB / rustix::param::page_size() as u64;
        let root = machine(&[("proc/self/statm", &format!("{pages} 5 1 1 0 1 0\n"))]);
        let available = AvailableMemory::read(root.path(), 600 * MB);
        assert_eq!((available.per_process + 1000) / MB, 350);
        assert_eq!((available.total + 1000) / MB, 700);
    }
}
