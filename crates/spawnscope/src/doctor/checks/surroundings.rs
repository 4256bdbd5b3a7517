//! Where this runs: gVisor, WSL, a container, a virtual machine. What they make dear cannot be mended from inside.

use super::Check;
use crate::doctor::{Examination, Finding, Findings};
use crate::event::{Constant, Nanos};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "surroundings",
    looks_at: "marks of gVisor, WSL, containers and hypervisors",
    run,
};

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let surroundings = &examination.surroundings;
    let launch = examination.measured.launch;
    let fork = format!("a fork takes {} here", units::time(launch.fork));
    if surroundings.is_gvisor {
        findings.add(
            Finding::problem("the kernel is gVisor's: system calls are answered by a program")
                .evidence("/proc/version says so")
                .evidence(format!("{fork}; each launch is many system calls and page faults, which cost several times as much as in Linux"))
                .fix("launch less: builtins and batches bring more here than elsewhere; where it is allowed, build in an ordinary container")
                .fix_cost("gVisor is there to isolate what runs in it: its owner decides"),
        );
    }
    if let Some(version) = surroundings.wsl {
        findings.add(
            Finding::problem_if(version == 1, format!("this is WSL {version}"))
                .evidence("/proc/sys/kernel/osrelease says so")
                .evidence(match version {
                    1 => format!("{fork}: Windows makes each process, and its scanners look at it"),
                    _ => "a virtual machine; files below /mnt/c come from Windows by messages".to_owned(),
                })
                .fix(match version {
                    1 => "WSL 2 launches as Linux does: `wsl --set-version NAME 2`",
                    _ => "keep what is built and launched in the Linux file system, not below /mnt/c",
                })
                .fix_cost("files that Windows programs use as well are slower for one of the two"),
        );
    }
    if let Some(kind) = &surroundings.container {
        findings.add(container(kind));
    }
    if let Some(name) = &surroundings.hypervisor {
        findings.add(hypervisor(name, examination));
    }
}

fn container(kind: &str) -> Finding {
    Finding::note(format!("this is a container ({kind})"))
        .evidence("settings of the kernel, its security modules and its scanners are the host's")
        .fix("run the doctor on the host as well: from in here, some of it cannot be seen")
        .fix_cost("a look")
}

fn hypervisor(name: &str, examination: &Examination<'_>) -> Finding {
    let time = |what| units::time(examination.measured.constant(what).map(|ns| Nanos(ns as u64)));
    let (copy, cpuid) = (time(Constant::PageCopy), time(Constant::Cpuid));
    Finding::note(format!("this is a virtual machine ({name})"))
        .evidence(format!(
            "page tables of guests are translated twice: a fork copies those of one MiB in {copy}"
        ))
        .evidence(format!(
            "an instruction that leaves the guest takes {cpuid}; where that is tens of microseconds, one hypervisor runs inside another"
        ))
        .fix("from inside nothing can be done but to launch less, and by vfork or posix_spawn from large parents")
        .fix_cost("nothing")
}
