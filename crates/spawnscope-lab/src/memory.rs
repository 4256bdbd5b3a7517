//! How much memory parents may use: what the machine has free, what control groups allow, and what one process may map.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use spawnscope_system::control_groups::directories;

/// The maximum share of the available memory.
const SHARE: f64 = 0.7;

/// The memory that may be used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// By all processes together.
    pub in_all: u64,
    /// By one process.
    pub each: u64,
}

impl Room {
    /// The memory available now. Without any information, it is unlimited.
    #[must_use]
    pub fn here() -> Room {
        let address_space = getrlimit(Resource::RLIMIT_AS).map_or(u64::MAX, |(soft, _)| soft);
        Room::of(Path::new("/"), address_space)
    }

    fn of(root: &Path, address_space: u64) -> Room {
        let free = meminfo(root, "MemAvailable:");
        let groups = least_left(root).map(|limit| limit.left);
        let in_all = groups.into_iter().chain(free).min().map_or(u64::MAX, share);
        let each = match address_space {
            u64::MAX => u64::MAX,
            limit => share(limit.saturating_sub(mapped(root))),
        };
        Room { in_all, each }
    }
}

/// A control group with a memory limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupLimit {
    /// Its directory in the control group file system.
    pub directory: PathBuf,
    /// The bytes that remain until the limit.
    pub left: u64,
}

/// The group among this process's group and its ancestors whose limit leaves the least; `None` if none has a limit.
#[must_use]
pub fn group_limit() -> Option<GroupLimit> {
    least_left(Path::new("/"))
}

fn least_left(root: &Path) -> Option<GroupLimit> {
    let limits = directories(root, "self", "memory").into_iter().filter_map(|directory| {
        let left = left_in(&directory)?;
        Some(GroupLimit { directory, left })
    });
    limits.min_by_key(|limit| limit.left)
}

fn share(bytes: u64) -> u64 {
    (SHARE * bytes as f64) as u64
}

/// A value of /proc/meminfo, in bytes.
pub(super) fn meminfo(root: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The address space of this process. A worker runs the same program, and starts with as much.
fn mapped(root: &Path) -> u64 {
    let text = fs::read_to_string(root.join("proc/self/statm")).unwrap_or_default();
    let pages = text.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * rustix::param::page_size() as u64
}

/// The bytes that a group's limit leaves. Inactive file pages count as free, because the kernel reclaims them first.
fn left_in(directory: &Path) -> Option<u64> {
    let number = |name: &str| {
        fs::read_to_string(directory.join(name))
            .ok()?
            .trim()
            .parse::<u64>()
            .ok()
    };
    let limit = ["memory.max", "memory.high", "memory.limit_in_bytes"]
        .into_iter()
        .filter_map(number)
        .min()?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let statistics = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let cached = ["total_inactive_file ", "inactive_file "].into_iter().find_map(|name| {
        let line = statistics.lines().find_map(|line| line.strip_prefix(name))?;
        line.parse::<u64>().ok()
    });
    Some(limit.saturating_sub(used.saturating_sub(cached.unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// A machine with 1000 MB free, and with these files.
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
    fn assert_room(files: &[(&str, &str)], mb: u64) {
        let room = Room::of(machine(files).path(), u64::MAX);
        assert_eq!((room.in_all + 1000) / MB, mb * 7 / 10, "{room:?}");
        assert_eq!(room.each, u64::MAX);
    }

    #[test]
    fn without_limits_it_is_what_the_machine_has_left() {
        assert_room(&[("proc/self/cgroup", "0::/user\n")], 1000);
        assert_room(
            &[
                ("proc/self/cgroup", "0::/user\n"),
                ("sys/fs/cgroup/user/memory.max", "max\n"),
            ],
            1000,
        );
        let nothing_known = tempfile::tempdir().unwrap();
        assert_eq!(Room::of(nothing_known.path(), u64::MAX).in_all, u64::MAX);
    }

    #[test]
    fn a_limit_of_a_group_above_counts_less_what_the_group_has() {
        assert_room(
            &[
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/memory.max", "700000000\n"),
                ("sys/fs/cgroup/a/memory.current", "300000000\n"),
                (
                    "sys/fs/cgroup/a/memory.stat",
                    "anon 200000000\ninactive_file 100000000\n",
                ),
            ],
            500,
        );
    }

    #[test]
    fn the_first_version_and_names_from_outside_a_container_are_known_too() {
        assert_room(
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
    fn a_limit_of_addresses_is_that_of_each_process() {
        let pages = 100 * MB / rustix::param::page_size() as u64;
        let root = machine(&[("proc/self/statm", &format!("{pages} 5 1 1 0 1 0\n"))]);
        let room = Room::of(root.path(), 600 * MB);
        assert_eq!((room.each + 1000) / MB, 350);
        assert_eq!((room.in_all + 1000) / MB, 700);
    }
}
