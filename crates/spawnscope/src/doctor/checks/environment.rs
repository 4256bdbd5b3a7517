//! Where this runs: gVisor, WSL, a container, a virtual machine. What they make dear cannot be mended from inside.

use super::{Check, Run, fork_of_mebibyte, takes_for_each_mebibyte};
use crate::doctor::nesting::Nesting;
use crate::doctor::{Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "environment",
    looks_at: "marks of gVisor, WSL, containers, hypervisors, sudo; CPUID, timed",
    run: Run::Looking(run),
};

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let environment = &examination.environment;
    let launch = examination.measured.launch;
    if examination.machine.is_behind_sudo() {
        findings.unseen(
            "your own PATH, LD_ and other variables: sudo has replaced them; run the doctor without sudo as well",
        );
    }
    let behind_fork = |joint, sentence| behind_fork(launch.fork, joint, sentence);
    if environment.is_gvisor {
        findings.add(
            Finding::problem("the kernel is gVisor's: system calls are answered by a program")
                .evidence("/proc/version says so")
                .evidence(behind_fork(";", "each launch is many system calls and page faults, which cost several times as much as in Linux"))
                .fix("launch less: builtins and batches bring more here than elsewhere; where it is allowed, build in an ordinary container")
                .fix_cost("gVisor is there to isolate what runs in it: its owner decides"),
        );
    }
    if let Some(version) = environment.wsl {
        findings.add(
            Finding::problem_if(version == 1, format!("this is WSL {version}"))
                .evidence("/proc/sys/kernel/osrelease says so")
                .evidence(match version {
                    1 => behind_fork(":", "Windows makes each process, and its scanners look at it"),
                    _ => "a virtual machine; files below /mnt/c come from Windows by messages".to_owned(),
                })
                .fix(match version {
                    1 => "WSL 2 launches as Linux does: `wsl --set-version NAME 2`",
                    _ => "keep what is built and launched in the Linux file system, not below /mnt/c",
                })
                .fix_cost("files that Windows programs use as well are slower for one of the two"),
        );
    }
    if let Some(kind) = &environment.container {
        findings.add(container(kind));
    }
    if let Some(name) = environment.hypervisor.as_ref().filter(|_| !environment.is_gvisor) {
        findings.add(hypervisor(name, examination));
    }
    if environment.is_hypervisor_unseen {
        findings.unseen("whether a hypervisor runs this machine: neither the processor nor the firmware shows it");
    }
}

/// What a fork takes, if that is known, and a sentence.
fn behind_fork(fork: Option<Nanos>, joint: &str, sentence: &str) -> String {
    match fork {
        Some(fork) => format!("a fork takes {} here{joint} {sentence}", units::time(fork)),
        None => sentence.to_owned(),
    }
}

fn container(kind: &str) -> Finding {
    Finding::note(format!("this is a container ({kind})"))
        .evidence("settings of the kernel, its security modules and its scanners are the host's")
        .fix("run the doctor on the host as well: from in here, some of it cannot be seen")
        .fix_cost("a look")
}

fn hypervisor(name: &str, examination: &Examination<'_>) -> Finding {
    let (nesting, sentence) = examination.nesting().unzip();
    let is_nested = nesting == Some(Nesting::Nested);
    let fork = fork_of_mebibyte(examination.measured).map(takes_for_each_mebibyte);
    let inside = if is_nested {
        ", most likely inside of another one"
    } else {
        ""
    };
    Finding::note(format!("this is a virtual machine ({name}){inside}"))
        .evidence_if(sentence)
        .evidence(match fork {
            Some(fork) => format!("page tables of guests are translated twice: {fork}"),
            None => "page tables of guests are translated twice".to_owned(),
        })
        .fix("from inside nothing can be done but to launch less, and by vfork or posix_spawn from large parents")
        .fix(if is_nested {
            "whoever runs the outer machine can run this one beside it, on the hardware's own hypervisor"
        } else {
            "whoever runs the hypervisor can give it huge pages, which makes the second translation shorter"
        })
        .fix_cost("nothing inside; another machine, or memory set apart, outside")
}
