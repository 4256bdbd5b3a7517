//! Limits on the number of processes that are nearly reached. Beyond them, forks fail with EAGAIN.

use super::{Check, Run};
use crate::environment::{Environment, is_in_initial_pid_namespace};
use crate::processes::field;
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "process-limits",
    examines: "limits on processes: pids.max, RLIMIT_NPROC, pid_max, threads-max",
    run: Run::Reading(run),
};

/// A limit is reported if at least this share of it is used.
const MIN_USED_SHARE: f64 = 0.8;

/// A limit, and how much of it is used.
struct Limit {
    source: LimitSource,
    used: u64,
    limit: u64,
}

/// The kind of limit, which determines how to raise it.
enum LimitSource {
    /// `pids.max` of a control group, in the hierarchy that is mounted at `root`.
    Group {
        root: &'static str,
        group: String,
    },
    /// The soft RLIMIT_NPROC of a user.
    User {
        user: u64,
        /// The hard limit; `None` if it is unlimited.
        hard_limit: Option<u64>,
    },
    PidMax,
    ThreadsMax,
}

/// The kernel's maximum on 64-bit machines (`PID_MAX_LIMIT`).
const MAX_PIDS: u64 = 4 << 20;

impl Limit {
    fn name(&self) -> String {
        match &self.source {
            LimitSource::Group { group, .. } => format!("pids.max of the control group /{group}"),
            LimitSource::User { user, .. } => format!("RLIMIT_NPROC of user {user}"),
            LimitSource::PidMax => "kernel.pid_max".to_owned(),
            LimitSource::ThreadsMax => "kernel.threads-max".to_owned(),
        }
    }

    fn is_near(&self) -> bool {
        self.limit > 0 && self.used as f64 >= MIN_USED_SHARE * self.limit as f64
    }

    /// Returns how to double the limit: who can do it, and the commands.
    fn raise(&self, environment: &Environment) -> Vec<String> {
        let twice = self.limit.saturating_mul(2);
        match &self.source {
            LimitSource::PidMax if self.limit >= MAX_PIDS => {
                vec!["it cannot be raised: it is the kernel's maximum".to_owned()]
            }
            LimitSource::PidMax => raise_setting(environment, "kernel.pid_max", twice.min(MAX_PIDS)),
            LimitSource::ThreadsMax => raise_setting(environment, "kernel.threads-max", twice),
            LimitSource::User { hard_limit, .. } => raise_user_limit(self.limit, twice, *hard_limit),
            LimitSource::Group { .. } if environment.container.is_some() => vec![
                "raise it where the container is started: `--pids-limit` of docker and podman, podPidsLimit of kubelet"
                    .to_owned(),
            ],
            LimitSource::Group { root, group } => raise_group_limit(root, group, twice),
        }
    }
}

fn raise_setting(environment: &Environment, name: &str, value: u64) -> Vec<String> {
    let location = environment.where_settings_are_made();
    vec![format!("raise it, {location}:"), format!("  sysctl {name}={value}")]
}

/// Returns how to raise RLIMIT_NPROC.
fn raise_user_limit(limit: u64, twice: u64, hard_limit: Option<u64>) -> Vec<String> {
    let shell = match hard_limit {
        Some(hard_limit) if hard_limit <= limit => None,
        hard_limit => {
            let value = hard_limit.map_or(twice, |hard_limit| twice.min(hard_limit));
            let up_to = hard_limit.map_or("any value".to_owned(), units::count);
            let instruction =
                format!("raise it in the shell that starts the launching program (the hard limit allows {up_to}):");
            Some([instruction, format!("  ulimit -S -u {value}")])
        }
    };
    let root = "for all logins, root sets `nproc` in /etc/security/limits.conf; for a service, LimitNPROC=";
    shell.into_iter().flatten().chain([root.to_owned()]).collect()
}

/// Returns how to raise `pids.max` of a control group. The limit of a systemd unit must be set through systemd, which would overwrite a
/// direct change.
fn raise_group_limit(root: &str, group: &str, twice: u64) -> Vec<String> {
    let name = group.rsplit('/').next().unwrap_or_default();
    // The units of a user's service manager are changed through that manager.
    let option = if group.contains(".service/") && group.contains("user@") { " --user" } else { "" };
    let command = match [".service", ".scope", ".slice"].iter().any(|suffix| name.ends_with(suffix)) {
        true => format!("  systemctl{option} set-property '{name}' TasksMax={twice}"),
        false => format!("  echo {twice} >'{root}/{group}/pids.max'"),
    };
    vec!["raise it, as root or as its owner:".to_owned(), command]
}

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let mut limits = group_limits(machine);
    if let Some(used) = tasks(machine) {
        // Since Linux 6.14, each pid namespace has its own limit.
        let in_namespace = if is_in_initial_pid_namespace(machine) { used } else { visible_tasks(machine, |_| true) };
        let machine_limits = [
            (LimitSource::PidMax, "/proc/sys/kernel/pid_max", in_namespace),
            (LimitSource::ThreadsMax, "/proc/sys/kernel/threads-max", used),
        ];
        for (source, file, used) in machine_limits {
            limits.extend(machine.number(file).map(|limit| Limit { source, used, limit }));
        }
    } else {
        findings.add_not_examined("the number of tasks in /proc/loadavg");
    }
    limits.extend(user_limit(machine));
    for limit in limits.iter().filter(|limit| limit.is_near()) {
        findings.add(near_limit_finding(limit, &examination.environment));
    }
}

fn near_limit_finding(limit: &Limit, environment: &Environment) -> Finding {
    let title =
        format!("{} is nearly reached: {} of {}", limit.name(), units::count(limit.used), units::count(limit.limit));
    let finding = Finding::problem(title)
        .evidence("the limit counts processes and threads; beyond it, forks fail with \"Resource temporarily unavailable\"")
        .fix("list the programs with the most threads: `ps -eLf | awk '{print $1, $10}' | sort | uniq -c | sort -n | tail`")
        .fix("children that ended and were never reaped (state Z) count too: fix their parent");
    let raise = limit.raise(environment).into_iter();
    raise.fold(finding, Finding::fix).fix_cost("each additional task takes a few kilobytes of kernel memory")
}

/// Returns the number of tasks of the whole machine, even inside a container: 345 in `0.1 0.2 0.3 2/345 6789`.
fn tasks(machine: &Machine) -> Option<u64> {
    let load = machine.text("/proc/loadavg")?;
    load.split(' ').nth(3)?.split_once('/')?.1.parse().ok()
}

/// Returns the limits of this process's control groups and their ancestors.
fn group_limits(machine: &Machine) -> Vec<Limit> {
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
            let numbers = ["pids.current", "pids.max"].map(|file| machine.number(format!("{root}/{group}/{file}")));
            if let [Some(used), Some(limit)] = numbers {
                let group = group.to_owned();
                let source = LimitSource::Group { root, group };
                limits.push(Limit { source, used, limit });
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

/// Returns the limit of this process's user; `None` for root, to whom it does not apply.
fn user_limit(machine: &Machine) -> Option<Limit> {
    let status = machine.text("/proc/self/status")?;
    let user = owner(&status)?;
    if user == 0 {
        return None;
    }
    let limits = machine.text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    let mut values = line.split_whitespace();
    let limit = values.next()?.parse().ok()?;
    let hard_limit = values.next().and_then(|hard_limit| hard_limit.parse().ok());
    Some(Limit {
        source: LimitSource::User { user, hard_limit },
        used: visible_tasks(machine, |status| owner(status) == Some(user)),
        limit,
    })
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
