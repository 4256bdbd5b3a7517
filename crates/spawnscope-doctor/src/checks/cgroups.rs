//! Control groups: the version in use, and the cost of moving a process into one, which service managers and container runtimes do each
//! time they start a service or container.

use super::{Check, Run};
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "cgroups",
    examines: "the version of control groups, and a timed move between them",
    run: Run::Reading(run),
};

/// A move that takes this long is a problem. It waits for an RCU grace period on all CPUs, so a few milliseconds are normal.
const SLOW: Nanos = Nanos(5_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(groups) = examination.machine.text("/proc/self/cgroup") else {
        return;
    };
    let v1_controllers = count_v1_controllers(&groups);
    if let Some(took) = examination.measured.migration.filter(|took| *took >= SLOW) {
        findings.add(
            Finding::problem(format!("moving a process into a control group takes {}", units::time(took)))
                .evidence("timed by moving this process into its current group, which waits like any other move")
                .effect(Effect::measured(took, "each launch that is moved after its fork"))
                .fix("create the process in its group: clone3 with CLONE_INTO_CGROUP, which newer versions of runc, crun and systemd do")
                .fix(format!(
                    "the mount option favordynmods makes moves cheaper (Linux 6.0), {}",
                    examination.environment.where_settings_are_made()
                ))
                .fix_cost("with favordynmods, every fork and exit costs a little more"),
        );
    }
    if v1_controllers > 0 {
        let controllers = units::counted(v1_controllers, "cgroup controller uses", "cgroup controllers use");
        findings.add(
            Finding::note(format!("{controllers} cgroup v1"))
                .evidence(
                    "only cgroup v2 can create a process directly in its cgroup (CLONE_INTO_CGROUP); with v1, a process is moved \
                     once per hierarchy",
                )
                .fix(format!(
                    "boot with systemd.unified_cgroup_hierarchy=1, {}",
                    examination.environment.where_settings_are_made()
                ))
                .fix_cost("old container runtimes support only cgroup v1"),
        );
    }
}

/// Counts the controllers of cgroup v1. Several can share a hierarchy, as in `4:cpu,cpuacct:/job`. Named hierarchies have none.
fn count_v1_controllers(groups: &str) -> u64 {
    let lists = groups.lines().filter_map(|line| line.split(':').nth(1));
    let controllers = lists.flat_map(|list| list.split(','));
    let named = controllers.filter(|name| !name.is_empty() && !name.starts_with("name="));
    named.count() as u64
}
