//! The CPU frequency governor. Short processes may end before it raises the frequency.

use super::{Check, Run};
use crate::{Examination, Finding, Findings};

pub(super) const CHECK: Check =
    Check { id: "governor", examines: "the CPU frequency governor", run: Run::Reading(run) };

const DIRECTORY: &str = "/sys/devices/system/cpu";

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    // A governor inside a guest has no effect.
    if examination.environment.hypervisor.is_some() {
        return;
    }
    let Some(governor) = machine.text(format!("{DIRECTORY}/cpu0/cpufreq/scaling_governor")) else {
        return;
    };
    let driver = machine.text(format!("{DIRECTORY}/cpu0/cpufreq/scaling_driver")).unwrap_or_default();
    // With these drivers, `powersave` raises the frequency under load.
    let is_automatic =
        driver.starts_with("intel_pstate") || driver.starts_with("amd-pstate-epp") || driver == "amd_pstate_epp";
    let is_slowest = governor == "powersave" && !is_automatic;
    let is_late = matches!(governor.as_str(), "ondemand" | "conservative");
    if !is_slowest && !is_late {
        return;
    }
    let title = if is_slowest {
        "the processor stays at its lowest frequency".to_owned()
    } else {
        format!("the governor {governor} raises the frequency late")
    };
    findings.add(
        Finding::problem_if(is_slowest, title)
            .evidence(format!("cpu0: governor {governor}, driver {driver}"))
            .evidence("a launch ends within a millisecond, before a sampling governor notices the load")
            .fix(format!(
                "while speed matters, use `schedutil` or `performance`, {}:",
                examination.environment.where_settings_are_made()
            ))
            .fix("  cpupower frequency-set -g schedutil")
            .fix_cost("energy, heat and noise; on battery, run time"),
    );
}
