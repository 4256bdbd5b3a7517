//! Control groups: which version, and what moving a process into one costs, as service managers and containers' runtimes do at
//! each start.

use super::{Check, Run};
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "cgroups",
    looks_at: "the version of control groups, and a move between them, timed",
    run: Run::Looking(run),
};

/// A move waits until all CPUs have noticed: some milliseconds are usual.
const DEAR: Nanos = Nanos(5_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(groups) = examination.machine.text("/proc/self/cgroup") else {
        return;
    };
    let old = controllers(&groups);
    if let Some(took) = examination.measured.migration.filter(|took| *took >= DEAR) {
        findings.add(
            Finding::problem(format!("moving a process into a control group takes {}", units::time(took)))
                .evidence("timed by moving this process to the group that it is in, which waits as any other move does")
                .effect(Effect::measured(took, "each launch that is moved after its fork"))
                .fix("create the process in its group: clone3 with CLONE_INTO_CGROUP, which runc, crun and systemd do in newer versions")
                .fix(format!(
                    "the mount option favordynmods makes moves cheaper (Linux 6.0), {}",
                    examination.environment.where_settings_are_made()
                ))
                .fix_cost("with favordynmods, every fork and exit costs a little more"),
        );
    }
    if old > 0 {
        let controllers = units::counted(old, "controller", "controllers");
        findings.add(
            Finding::note(format!("control groups of version 1 for {controllers}"))
                .evidence("a launch can be created in its group (CLONE_INTO_CGROUP) only in version 2; here it is moved once for each hierarchy")
                .fix(format!("boot with systemd.unified_cgroup_hierarchy=1, {}", examination.environment.where_settings_are_made()))
                .fix_cost("old runtimes of containers know version 1 only"),
        );
    }
}

/// Those of version 1, of which several can share a hierarchy: `4:cpu,cpuacct:/job`. Named hierarchies have none.
fn controllers(groups: &str) -> u64 {
    let lists = groups.lines().filter_map(|line| line.split(':').nth(1));
    let controllers = lists.flat_map(|list| list.split(','));
    let own = controllers.filter(|name| !name.is_empty() && !name.starts_with("name="));
    own.count() as u64
}
