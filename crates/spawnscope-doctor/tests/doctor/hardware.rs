//! Tests of the check `environment`, and of the description of what surrounds the process.

use spawnscope_doctor::environment::Environment;
use spawnscope_doctor::{Measured, Severity};

use crate::tree::{Tree, diagnose, expect_finding, expect_nothing, usual_measurements};

#[test]
fn kernels_that_are_not_linux_are_problems() {
    for version in ["4.4.0", "4.19.0-gvisor"] {
        let version = format!("Linux version {version} #1 SMP Sun Jan 10 15:06:54 PST 2016");
        // The CPU flags in gVisor are those of the host, so they show the hypervisor below the
        // host, which is not described.
        let gvisor = Tree::new().file("proc/version", version).file("proc/cpuinfo", "flags\t: fpu hypervisor\n");
        let words = ["gVisor", "a fork takes 200 us here"];
        expect_finding("environment", &gvisor.machine(), &usual_measurements(), Severity::Problem, &words);
        assert_eq!(Environment::detect(&gvisor.machine()).description(), None);
        let untimed = diagnose("environment", &gvisor.machine(), &Measured::default()).findings;
        assert!(!untimed[0].evidence.join(" ").contains("takes "), "{untimed:?}");
    }
    let release = "proc/sys/kernel/osrelease";
    let first = Tree::new().file(release, "4.4.0-19041-Microsoft");
    expect_finding("environment", &first.machine(), &usual_measurements(), Severity::Problem, &["WSL 1"]);
    let second = Tree::new().file(release, "5.15.90.1-microsoft-standard-WSL2");
    expect_nothing("environment", &second.machine(), &usual_measurements());
}

#[test]
fn containers_and_virtual_machines_are_described_and_are_no_findings() {
    let guest = |tree: Tree| tree.file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme hypervisor lm\n");
    let qemu = guest(Tree::new()).file("sys/class/dmi/id/sys_vendor", "QEMU\n");
    for (tree, words) in [
        (Tree::new().file("run/.containerenv", ""), "a container (podman); the host's"),
        (Tree::new().file("proc/1/environ", "PATH=/bin\0container=systemd-nspawn\0"), "a container (systemd-nspawn)"),
        (Tree::new().file("proc/1/cgroup", "4:pids:/kubepods/besteffort/pod1\n"), "a container (kubepods)"),
        (guest(Tree::new()).file("sys/hypervisor/type", "xen\n"), "a virtual machine (xen)"),
        (guest(Tree::new()), "a virtual machine (unidentified hypervisor)"),
        (qemu.file(".dockerenv", ""), "this is a container (docker) in a virtual machine (QEMU)"),
    ] {
        let diagnosis = diagnose("environment", &tree.machine(), &usual_measurements());
        assert!(diagnosis.findings.is_empty() && diagnosis.not_examined.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.environment.as_ref().is_some_and(|description| description.contains(words)), "{diagnosis:?}");
    }
}

#[test]
fn bare_metal_has_no_findings_even_if_its_image_was_built_for_containers() {
    let bare = Tree::new().file("proc/cpuinfo", "flags\t: fpu vme\n").file("proc/version", "Linux version 6.1.0");
    expect_nothing("environment", &bare.machine(), &usual_measurements());
    assert_eq!(Environment::detect(&bare.machine()), Environment::default());
    let image = Tree::new()
        .file("proc/cpuinfo", "flags\t: fpu vme\n")
        .file(".dockerenv", "")
        .link("proc/self/ns/pid", "pid:[4026531836]")
        .link("proc/self/ns/uts", "uts:[4026531838]")
        .link("proc/self/ns/ipc", "ipc:[4026531839]");
    assert_eq!(Environment::detect(&image.machine()).description(), None);
}
