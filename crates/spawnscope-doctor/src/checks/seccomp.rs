//! Seccomp filters: programs that the kernel runs for each system call of this process and of what
//! it launches.

use crate::processes::field;
use crate::{Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// A system call that takes this long is slow; 0.05 to 0.3 us is normal.
const SLOW_CALL: Nanos = Nanos(1_000);

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(status) = examination.machine.text("/proc/self/status") else {
        findings.add_not_examined("/proc/self/status");
        return;
    };
    if field(&status, "Seccomp") != Some("2") {
        return;
    }
    let filters = field(&status, "Seccomp_filters").and_then(|number| number.parse().ok());
    let count = filters
        .map_or("seccomp filters".to_owned(), |count| units::counted(count, "seccomp filter", "seccomp filters"));
    let call = examination.measured.system_call;
    // In gVisor a user-space program handles system calls, which is slow by itself.
    let is_slow = call.is_some_and(|call| call >= SLOW_CALL) && !examination.environment.is_gvisor;
    let takes = call.map(|call| {
        format!(
            "a system call that does nothing takes {}; the filters' share of it is unknown, since no call is exempt",
            units::time(call)
        )
    });
    let owner = match examination.environment.container {
        Some(_) => "the operator of this container",
        None => "the program that installed them, such as a sandbox or a service manager",
    };
    let finding = Finding::problem_if(is_slow, format!("each system call runs {count}"))
        .evidence_if(takes)
        .evidence("each process launched from here inherits them, and may add its own")
        .fix(format!("leave them on: they protect the kernel from the programs that run here; which ones are needed is decided by {owner}"))
        .fix("libseccomp 2.5 can build filters as binary trees (SCMP_FLTATR_CTL_OPTIMIZE), and Linux 5.11 caches allowed calls")
        .fix_cost("a newer runtime or kernel");
    findings.add(finding);
}
