//! How many CPUs a process may use, according to its affinity (which cpusets also limit) and the
//! CPU quotas of its control groups.

use std::fs;
use std::path::Path;

use crate::control_groups;
use rustix::thread::sched_getaffinity;
use spawnscope_data::event::Pid;

/// Returns the number of CPUs that `process` may use, from its affinity and the quota of the
/// calling process's control groups. A quota of one and a half CPUs is 1.5. `process` may have
/// ended, but `None` is returned once it has been reaped.
pub fn allowed_cpus(process: Pid) -> Option<f64> {
    let affinity = sched_getaffinity(rustix::process::Pid::from_raw(process.0)).ok()?;
    let count = f64::from(affinity.count());
    Some(quota(Path::new("/")).map_or(count, |quota| quota.min(count))).filter(|allowed| *allowed > 0.0)
}

/// Returns the smallest quota among this process's groups and their ancestors; `None` if none of
/// them has a quota.
fn quota(root: &Path) -> Option<f64> {
    let directories = control_groups::directories(root, "self", "cpu");
    let quotas = directories.iter().filter_map(|directory| quota_in(directory));
    quotas.filter(|quota| *quota > 0.0).reduce(f64::min)
}

fn quota_in(directory: &Path) -> Option<f64> {
    if let Ok(text) = fs::read_to_string(directory.join("cpu.max")) {
        let (quota, period) = text.trim().split_once(' ')?;
        return Some(positive_micros(quota)? / positive_micros(period)?);
    }
    let quota = fs::read_to_string(directory.join("cpu.cfs_quota_us")).ok()?;
    let period = fs::read_to_string(directory.join("cpu.cfs_period_us")).ok()?;
    Some(positive_micros(&quota)? / positive_micros(&period)?)
}

/// Returns the microseconds in a text; `None` for "max" and -1, which mean that the group has no
/// quota.
fn positive_micros(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|micros| *micros > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota_of(files: &[(&str, &str)]) -> Option<f64> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        quota(root.path())
    }

    #[test]
    fn the_smallest_quota_counts() {
        let groups = ("proc/self/cgroup", "0::/a/b\n");
        assert_eq!(quota_of(&[groups]), None);
        assert_eq!(quota_of(&[groups, ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")]), None);
        let above = ("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
        assert_eq!(quota_of(&[groups, above]), Some(1.5));
        assert_eq!(quota_of(&[groups, above, ("sys/fs/cgroup/a/b/cpu.max", "20000 10000\n")]), Some(1.5));
    }

    #[test]
    fn quotas_of_cgroup_v1_are_read() {
        let groups = ("proc/self/cgroup", "4:cpu,cpuacct:/x\n1:name=systemd:/x\n");
        let period = ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
        let limited = [groups, period, ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n")];
        assert_eq!(quota_of(&limited), Some(0.5));
        assert_eq!(quota_of(&[groups, period, ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n")]), None);
    }

    #[test]
    fn this_process_may_use_at_least_a_part_of_a_cpu() {
        assert!(allowed_cpus(Pid(std::process::id().cast_signed())).is_some_and(|cpus| cpus > 0.0));
        assert_eq!(allowed_cpus(Pid(i32::MAX)), None);
    }
}
