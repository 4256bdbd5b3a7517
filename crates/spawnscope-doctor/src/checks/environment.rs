//! Kernels that make each launch slow, gVisor and WSL 1. What else surrounds this process, a
//! container or a virtual machine, is a line of the machine's description, not a finding:
//! `Environment::description`.

use crate::{Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let environment = &examination.environment;
    let fork = examination.measured.launch.fork;
    if examination.machine.is_under_sudo() {
        findings.add_not_examined(
            "your own PATH, LD_ and other variables: sudo replaced them; run the doctor without sudo as well",
        );
    }
    if environment.is_gvisor {
        findings.add(
            Finding::problem("the kernel is gVisor's: a user-space program handles system calls")
                .evidence("according to /proc/version")
                .evidence(with_fork_time(fork, ";", "each launch needs many system calls and page faults, all several times slower than in Linux"))
                .fix("launch fewer programs: builtins and batches save more here than elsewhere; if allowed, build in an ordinary container")
                .fix_cost("an ordinary container isolates programs less, and the operator must allow it"),
        );
    }
    if environment.wsl == Some(1) {
        findings.add(
            Finding::problem("this is WSL 1")
                .evidence("according to /proc/sys/kernel/osrelease")
                .evidence(with_fork_time(fork, ":", "Windows creates each process, and its scanners examine it"))
                .fix("WSL 2 launches as fast as Linux: `wsl --set-version NAME 2`")
                .fix_cost("files that Windows programs use too are slower for one of the two systems"),
        );
    }
}

/// Returns the sentence, preceded by the fork time if that is known.
fn with_fork_time(fork: Option<Nanos>, separator: &str, sentence: &str) -> String {
    match fork {
        Some(fork) => format!("a fork takes {} here{separator} {sentence}", units::time(fork)),
        None => sentence.to_owned(),
    }
}
