//! Seccomp filters: programs that judge each system call of each process here.

use super::{Check, Run};
use crate::doctor::processes::field;
use crate::doctor::{Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "seccomp",
    looks_at: "seccomp filters on this process, and a system call, timed",
    run: Run::Looking(run),
};

/// From here on, system calls are dear: 0.05 to 0.3 us is usual.
const DEAR_CALL: Nanos = Nanos(1_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(status) = examination.machine.text("/proc/self/status") else {
        findings.unseen("/proc/self/status");
        return;
    };
    if field(&status, "Seccomp") != Some("2") {
        return;
    }
    let filters = field(&status, "Seccomp_filters").and_then(|number| number.parse().ok());
    let count = filters.map_or("seccomp filters".to_owned(), |count| {
        units::counted(count, "seccomp filter", "seccomp filters")
    });
    let call = examination.measured.system_call;
    // In gVisor it is a program that answers, and slow by itself.
    let is_dear = call.is_some_and(|call| call >= DEAR_CALL) && !examination.environment.is_gvisor;
    let takes = call.map(|call| {
        format!(
            "a system call that does nothing takes {}; the share of filters is unknown, since no call is exempt from them",
            units::time(call)
        )
    });
    let owner = match examination.environment.container {
        Some(_) => "whoever runs this container decides",
        None => "whoever starts this with them, such as a sandbox or a service manager, decides",
    };
    let finding = Finding::problem_if(is_dear, format!("each system call passes {count}"))
        .evidence_if(takes)
        .evidence("every process launched from here inherits them, and may add its own")
        .fix(format!("leave them on: they keep what runs here from the kernel; {owner}"))
        .fix("filters built by libseccomp 2.5 or later can be binary trees (SCMP_FLTATR_CTL_OPTIMIZE), and Linux 5.11 remembers plain permissions")
        .fix_cost("a newer runtime or kernel");
    findings.add(finding);
}
