//! The machine: its properties and its load, which a reader must know to compare reports, and how
//! much memory parents may use: the free memory, limited by control groups and by what one process
//! may map.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use serde::Serialize;

use spawnscope_system::control_groups::directories;
use spawnscope_system::procfs;

/// The machine of a report. Properties that cannot be determined are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    pub processor: Option<String>,
    pub cpus: u64,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
    pub libc: Option<String>,
    /// Whether the machine is virtual, which makes page tables more expensive.
    pub is_virtual: Option<bool>,
    pub huge_pages: Option<String>,
    pub as_root: bool,
    pub spawnscope: String,
    pub load_before: Option<f64>,
    /// The load average of the last minute of the run. It includes the lab's own load.
    pub load_after: Option<f64>,
}

impl Machine {
    pub fn read() -> Machine {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
        Machine {
            processor: processor_field(&processors, "model name"),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory_bytes: meminfo(Path::new("/"), "MemTotal"),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            libc: libc_version(),
            is_virtual: is_virtual(processor_field(&processors, "flags").as_deref(), Path::new("/")),
            huge_pages: huge_pages.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
            as_root: rustix::process::geteuid().is_root(),
            spawnscope: env!("CARGO_PKG_VERSION").to_owned(),
            load_before: read_load(),
            load_after: None,
        }
    }
}

pub fn read_load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn processor_field(processors: &str, name: &str) -> Option<String> {
    let line = processors.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns whether the machine is virtual, according to the CPU flags on x86, or to files on other
/// architectures.
fn is_virtual(flags: Option<&str>, root: &Path) -> Option<bool> {
    let by_flags = flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let files = ["sys/hypervisor/type", "proc/device-tree/hypervisor"];
    by_flags.or_else(|| files.iter().any(|file| root.join(file).exists()).then_some(true))
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: the function returns a constant string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_str().ok()?))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    None
}

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

fn meminfo(root: &Path, name: &str) -> Option<u64> {
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

    #[test]
    fn a_machine_is_virtual_by_its_flags_or_files_or_unknown() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(is_virtual(Some("fpu hypervisor sse"), root.path()), Some(true));
        assert_eq!(is_virtual(Some("fpu sse"), root.path()), Some(false));
        assert_eq!(is_virtual(None, root.path()), None, "no evidence");
        fs::create_dir_all(root.path().join("sys/hypervisor")).unwrap();
        fs::write(root.path().join("sys/hypervisor/type"), "xen\n").unwrap();
        assert_eq!(is_virtual(None, root.path()), Some(true));
    }

    const MB: u64 = 1_000_000;

    /// Returns the root directory of a machine with 1000 MB of available memory and with these
    /// files.
    fn machine_with(files: &[(&str, &str)]) -> tempfile::TempDir {
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
        let available = AvailableMemory::read(machine_with(files).path(), u64::MAX);
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
        let root = machine_with(&[("proc/self/statm", &format!("{pages} 5 1 1 0 1 0\n"))]);
        let available = AvailableMemory::read(root.path(), 600 * MB);
        assert_eq!((available.per_process + 1000) / MB, 350);
        assert_eq!((available.total + 1000) / MB, 700);
    }
}
