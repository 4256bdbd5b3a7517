//! Limits of processes that are nearly reached: forks fail with EAGAIN beyond them.

use super::{Check, Run};
use crate::doctor::processes::field;
use crate::doctor::surroundings::is_in_first_pid_namespace;
use crate::doctor::{Examination, Finding, Findings, Machine};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "process-limits",
    looks_at: "limits of processes: pids.max, RLIMIT_NPROC, pid_max, threads-max",
    run: Run::Looking(run),
};

/// From this share on, a limit is near.
const NEAR: f64 = 0.8;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let mut limits = of_groups(machine);
    if let Some(used) = tasks(machine) {
        // Since Linux 6.14, each pid namespace has a limit of its own.
        let numbered = if is_in_first_pid_namespace(machine) {
            used
        } else {
            seen_tasks(machine, |_| true)
        };
        let of_machine = [
            ("kernel.pid_max", "/proc/sys/kernel/pid_max", numbered),
            ("kernel.threads-max", "/proc/sys/kernel/threads-max", used),
        ];
        for (name, file, used) in of_machine {
            limits.extend(machine.number(file).map(|limit| (name.to_owned(), used, limit)));
        }
    } else {
        findings.unseen("the number of tasks in /proc/loadavg");
    }
    limits.extend(of_user(machine));
    for (name, used, limit) in limits {
        if limit == 0 || (used as f64) < NEAR * limit as f64 {
            continue;
        }
        findings.add(
            Finding::problem(format!(
                "{name} is nearly reached: {} of {}",
                units::count(used),
                units::count(limit)
            ))
            .evidence("processes and threads count; beyond the limit, forks fail: \"Resource temporarily unavailable\"")
            .fix("look who has so many: `ps -eLf | awk '{print $1, $10}' | sort | uniq -c | sort -n | tail`")
            .fix("children that ended and were never waited for (state Z) count as well: mend their parent")
            .fix_cost("a higher limit takes some kilobytes of kernel memory for each task"),
        );
    }
}

/// Tasks of the whole machine, also where only a container's are seen: `0.1 0.2 0.3 2/345 6789`.
fn tasks(machine: &Machine) -> Option<u64> {
    let load = machine.text("/proc/loadavg")?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// The control groups that this process is in, and those above them.
fn of_groups(machine: &Machine) -> Vec<(String, u64, u64)> {
    let groups = machine.text("/proc/self/cgroup").unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let (root, group) = match line.split(':').collect::<Vec<_>>()[..] {
            [_, "", group] => ("/sys/fs/cgroup", group),
            [_, controllers, group] if controllers.split(',').any(|name| name == "pids") => {
                ("/sys/fs/cgroup/pids", group)
            }
            _ => continue,
        };
        let mut group = group.trim_matches('/');
        loop {
            let number = |file: &str| machine.number(format!("{root}/{group}/{file}"));
            if let (Some(used), Some(limit)) = (number("pids.current"), number("pids.max")) {
                limits.push((format!("pids.max of the control group /{group}"), used, limit));
            }
            match group.rsplit_once('/') {
                Some((above, _)) => group = above,
                None if group.is_empty() => break,
                None => group = "",
            }
        }
    }
    limits
}

/// The user's own limit, which does not hold for root.
fn of_user(machine: &Machine) -> Option<(String, u64, u64)> {
    let status = machine.text("/proc/self/status")?;
    let user = owner(&status)?;
    if user == 0 {
        return None;
    }
    let limits = machine.text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let limit = line.split_whitespace().next()?.parse().ok()?;
    let tasks = seen_tasks(machine, |status| owner(status) == Some(user));
    Some((format!("RLIMIT_NPROC of user {user}"), tasks, limit))
}

/// Tasks of the processes that can be seen and that `is_counted` by their status.
fn seen_tasks(machine: &Machine, is_counted: impl Fn(&str) -> bool) -> u64 {
    let pids = machine
        .names("/proc")
        .into_iter()
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let tasks = pids.filter_map(|pid| {
        let status = machine.text(format!("/proc/{pid}/status"))?;
        let threads = field(&status, "Threads")?.parse::<u64>().ok()?;
        is_counted(&status).then_some(threads)
    });
    tasks.sum()
}

fn owner(status: &str) -> Option<u64> {
    field(status, "Uid")?.split_whitespace().next()?.parse().ok()
}
