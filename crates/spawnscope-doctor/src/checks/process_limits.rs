//! Limits on the number of processes that are nearly reached. Beyond them, forks fail with EAGAIN.

use std::path::Path;

use crate::environment::{Environment, is_in_initial_pid_namespace};
use crate::processes::field;
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::units;

/// A limit is reported if at least this share of it is used.
const MIN_USED_SHARE: f64 = 0.8;

/// A limit, how much of it is used, and how to raise it.
struct Limit {
    name: String,
    used: u64,
    limit: u64,
    raise: Vec<String>,
}

/// The kernel's maximum on 64-bit machines (`PID_MAX_LIMIT`).
const MAX_PIDS: u64 = 4 << 20;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let (machine, environment) = (examination.machine, &examination.environment);
    let mut limits = group_limits(machine, environment);
    if let Some(used) = tasks(machine) {
        // Since Linux 6.14, each pid namespace has its own limit.
        let in_namespace = if is_in_initial_pid_namespace(machine) { used } else { visible_tasks(machine, |_| true) };
        limits.extend(machine_limit(machine, environment, "pid_max", in_namespace));
        limits.extend(machine_limit(machine, environment, "threads-max", used));
    } else {
        findings.add_not_examined("the number of tasks in /proc/loadavg");
    }
    limits.extend(user_limit(machine));
    for limit in limits {
        if limit.limit > 0 && limit.used as f64 >= MIN_USED_SHARE * limit.limit as f64 {
            findings.add(near_limit_finding(limit));
        }
    }
}

fn near_limit_finding(limit: Limit) -> Finding {
    let (used, max) = (units::count(limit.used), units::count(limit.limit));
    let finding = Finding::problem(format!("{} is nearly reached: {used} of {max}", limit.name))
        .evidence("the limit counts processes and threads; beyond it, forks fail with \"Resource temporarily unavailable\"")
        .fix("list the programs with the most threads: `ps -eLf | awk '{print $1, $10}' | sort | uniq -c | sort -n | tail`")
        .fix("children that ended and were never reaped (state Z) count too: fix their parent");
    let raised = limit.raise.into_iter().fold(finding, Finding::fix);
    raised.fix_cost("each additional task takes a few kilobytes of kernel memory")
}

/// Returns a limit of the whole machine, a file in /proc/sys/kernel.
fn machine_limit(machine: &Machine, environment: &Environment, name: &str, used: u64) -> Option<Limit> {
    let limit = machine.number(format!("/proc/sys/kernel/{name}"))?;
    let twice = limit.saturating_mul(2);
    let raise = match name {
        "pid_max" if limit >= MAX_PIDS => vec!["it cannot be raised: it is the kernel's maximum".to_owned()],
        _ => vec![
            format!("raise it, {}:", environment.where_settings_are_made()),
            format!("  sysctl kernel.{name}={}", if name == "pid_max" { twice.min(MAX_PIDS) } else { twice }),
        ],
    };
    Some(Limit { name: format!("kernel.{name}"), used, limit, raise })
}

/// Returns the number of tasks of the whole machine, even inside a container: 345 in
/// `0.1 0.2 0.3 2/345 6789`.
fn tasks(machine: &Machine) -> Option<u64> {
    let load = machine.text("/proc/loadavg")?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns the limits of this process's control groups and their ancestors.
fn group_limits(machine: &Machine, environment: &Environment) -> Vec<Limit> {
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
        for group in Path::new(group.trim_matches('/')).ancestors() {
            let group = group.display();
            let numbers = ["pids.current", "pids.max"].map(|file| machine.number(format!("{root}/{group}/{file}")));
            if let [Some(used), Some(limit)] = numbers {
                let name = format!("pids.max of the control group /{group}");
                let raise = raise_group_limit(environment, root, &group.to_string(), limit.saturating_mul(2));
                limits.push(Limit { name, used, limit, raise });
            }
        }
    }
    limits
}

/// Returns how to raise `pids.max` of a control group. The limit of a systemd unit must be set
/// through systemd, which would overwrite a direct change.
fn raise_group_limit(environment: &Environment, root: &str, group: &str, value: u64) -> Vec<String> {
    if environment.container.is_some() {
        let where_started =
            "raise it where the container is started: `--pids-limit` of docker and podman, podPidsLimit of kubelet";
        return vec![where_started.to_owned()];
    }
    let name = group.rsplit('/').next().unwrap_or_default();
    // The units of a user's service manager are changed through that manager.
    let option = if group.contains(".service/") && group.contains("user@") { " --user" } else { "" };
    let command = match [".service", ".scope", ".slice"].iter().any(|suffix| name.ends_with(suffix)) {
        true => format!("  systemctl{option} set-property '{name}' TasksMax={value}"),
        false => format!("  echo {value} >'{root}/{group}/pids.max'"),
    };
    vec!["raise it, as root or as its owner:".to_owned(), command]
}

/// Returns the limit of this process's user; `None` for root, to whom it does not apply.
fn user_limit(machine: &Machine) -> Option<Limit> {
    let status = machine.text("/proc/self/status")?;
    let user = owner(&status).filter(|user| *user != 0)?;
    let limits = machine.text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let mut values = line.split_whitespace();
    let limit: u64 = values.next()?.parse().ok()?;
    // An unlimited hard limit is not a number.
    let hard_limit = values.next().and_then(|hard_limit| hard_limit.parse().ok()).unwrap_or(u64::MAX);
    let mut raise = Vec::new();
    if hard_limit > limit {
        raise.push("raise it in the shell that starts the launching program:".to_owned());
        raise.push(format!("  ulimit -S -u {}", limit.saturating_mul(2).min(hard_limit)));
    }
    raise.push("for all logins, root sets `nproc` in /etc/security/limits.conf; for a service, LimitNPROC=".to_owned());
    let used = visible_tasks(machine, |status| owner(status) == Some(user));
    Some(Limit { name: format!("RLIMIT_NPROC of user {user}"), used, limit, raise })
}

/// Returns the number of tasks in the visible processes whose status `is_counted` accepts.
fn visible_tasks(machine: &Machine, is_counted: impl Fn(&str) -> bool) -> u64 {
    let pids = machine.names("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
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
