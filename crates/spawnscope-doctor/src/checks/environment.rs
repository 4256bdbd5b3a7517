//! The environment of this process: gVisor, WSL, a container, or a virtual machine. A program inside cannot change what makes launches slow
//! there.

use super::{Check, Run, fork_ns_per_mebibyte, fork_time_sentence};
use crate::nesting::Nesting;
use crate::{Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "environment",
    examines: "signs of gVisor, WSL, containers, sudo, and of one or two hypervisors",
    run: Run::Reading(run),
};

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let environment = &examination.environment;
    let launch = examination.measured.launch;
    if examination.machine.is_under_sudo() {
        findings.add_not_examined(
            "your own PATH, LD_ and other variables: sudo replaced them; run the doctor without sudo as well",
        );
    }
    if environment.is_gvisor {
        findings.add(
            Finding::problem("the kernel is gVisor's: a user-space program handles system calls")
                .evidence("according to /proc/version")
                .evidence(with_fork_time(launch.fork, ";", "each launch needs many system calls and page faults, all several times slower than in Linux"))
                .fix("launch fewer programs: builtins and batches save more here than elsewhere; if allowed, build in an ordinary container")
                .fix_cost("an ordinary container isolates programs less, and the operator must allow it"),
        );
    }
    if let Some(version) = environment.wsl {
        findings.add(
            Finding::problem_if(version == 1, format!("this is WSL {version}"))
                .evidence("according to /proc/sys/kernel/osrelease")
                .evidence(match version {
                    1 => with_fork_time(launch.fork, ":", "Windows creates each process, and its scanners examine it"),
                    _ => "WSL 2 is a virtual machine; each access to a file below /mnt/c is a request to Windows"
                        .to_owned(),
                })
                .fix(match version {
                    1 => "WSL 2 launches as fast as Linux: `wsl --set-version NAME 2`",
                    _ => "keep files that are built or executed in the Linux file system, not below /mnt/c",
                })
                .fix_cost("files that Windows programs use too are slower for one of the two systems"),
        );
    }
    if let Some(kind) = &environment.container {
        findings.add(container_finding(kind));
    }
    if let Some(name) = environment.hypervisor.as_ref().filter(|_| !environment.is_gvisor) {
        findings.add(hypervisor_finding(name, examination));
    }
    if environment.is_hypervisor_unknown {
        findings.add_not_examined("whether this is a virtual machine: neither the processor nor the firmware shows it");
    }
}

/// Returns the sentence, preceded by the fork time if that is known.
fn with_fork_time(fork: Option<Nanos>, separator: &str, sentence: &str) -> String {
    match fork {
        Some(fork) => format!("a fork takes {} here{separator} {sentence}", units::time(fork)),
        None => sentence.to_owned(),
    }
}

fn container_finding(kind: &str) -> Finding {
    Finding::note(format!("this is a container ({kind})"))
        .evidence("kernel settings, security modules and scanners belong to the host")
        .fix("run the doctor on the host as well: a container hides some of these")
        .fix_cost("another run")
}

fn hypervisor_finding(name: &str, examination: &Examination<'_>) -> Finding {
    let (nesting, sentence) = examination.nesting().unzip();
    let is_nested = nesting == Some(Nesting::Nested);
    let fork = fork_ns_per_mebibyte(examination.measured).map(fork_time_sentence);
    let inside = if is_nested { ", most likely inside another one" } else { "" };
    Finding::note(format!("this is a virtual machine ({name}){inside}"))
        .evidence_if(sentence)
        .evidence(match fork {
            Some(fork) => format!("guest addresses are translated twice (nested paging); {fork}"),
            None => "guest addresses are translated twice (nested paging)".to_owned(),
        })
        .fix("in the guest, the only fixes are fewer launches, and vfork or posix_spawn for large parents")
        .fix(if is_nested {
            "the operator of the host can run this guest directly on the hypervisor of the hardware"
        } else {
            "the host can back the guest's memory with huge pages, so that nested page walks are shorter"
        })
        .fix_cost(if is_nested {
            "no change to the guest; another host for it"
        } else {
            "no change to the guest; memory reserved for huge pages on the host"
        })
}
