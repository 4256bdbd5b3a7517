//! Tests of the checks `cpuid` and `environment`, and of the description of what surrounds the
//! process.

use spawnscope_data::event::{Constant, Nanos};
use spawnscope_doctor::environment::Environment;
use spawnscope_doctor::{Measured, Severity};

use crate::tree::{Tree, constant, diagnose, expect_finding, expect_nothing, usual_measurements};

/// Measurements of a machine on which a CPUID instruction takes `ns`, and each program start has 43
/// of them.
fn with_cpuid_time(ns: f64) -> Measured {
    let mut measured = usual_measurements();
    let replaced = [Constant::Cpuid, Constant::Identify];
    measured.constants.retain(|constant| !replaced.contains(&constant.what));
    measured.constants.push(constant(Constant::Identify, 43.0 * ns));
    measured.constants.push(constant(Constant::Cpuid, ns));
    measured
}

#[test]
fn slow_cpuid_instructions_are_a_note_and_very_slow_ones_a_problem() {
    let machine = Tree::new().machine();
    let finding = expect_finding("cpuid", &machine, &with_cpuid_time(5_000.0), Severity::Note, &["5.00 us"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(215_000));
    expect_finding("cpuid", &machine, &with_cpuid_time(60_000.0), Severity::Problem, &["60.0 us"]);
    expect_nothing("cpuid", &machine, &with_cpuid_time(30.0));
}

#[test]
fn the_number_of_cpuid_instructions_of_a_start_is_measured() {
    let machine = Tree::new().machine();
    let mut more = with_cpuid_time(5_000.0);
    more.constants.retain(|constant| constant.what != Constant::Identify);
    let unknown = diagnose("cpuid", &machine, &more);
    assert!(unknown.findings.is_empty() && unknown.not_examined.len() == 1, "{unknown:?}");
    more.constants.push(constant(Constant::Identify, 68.0 * 5_000.0));
    let finding = expect_finding("cpuid", &machine, &more, Severity::Note, &["68 CPUID instructions"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(340_000));
}

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

fn guest(flags: &str, product: &str) -> Tree {
    Tree::new()
        .file("proc/cpuinfo", format!("processor\t: 0\nflags\t\t: fpu hypervisor {flags}\n"))
        .file("sys/class/dmi/id/sys_vendor", product)
}

#[test]
fn nested_hypervisors_are_recognised_by_the_time_of_an_exit() {
    let plain = guest("lm", "QEMU\n");
    let mut busy = with_cpuid_time(60_000.0);
    busy.constants.last_mut().unwrap().low_ns = Some(1_000.0);
    for (tree, measured, evidence) in [
        (&plain, with_cpuid_time(8_000.0), "8.00 us: most likely, one hypervisor runs inside another, since"),
        (&plain, with_cpuid_time(2_500.0), "without another in between"),
        // A busy machine only adds time.
        (&plain, busy, "without another in between"),
        (&plain, with_cpuid_time(4_300.0), "unknown (CPUID, which causes a VM exit, takes 4.30 us; at most 2.50 us"),
        (&guest("tdx_guest", "QEMU\n"), with_cpuid_time(20_000.0), "encrypted memory (tdx_guest)"),
        (&guest("lm", "VirtualBox\n"), with_cpuid_time(20_000.0), "VirtualBox alone can be that slow"),
    ] {
        let found = diagnose("cpuid", &tree.machine(), &measured).findings;
        assert!(found[0].evidence.join(" ").contains(evidence), "{evidence}: {found:?}");
    }
    let bare = diagnose("cpuid", &Tree::new().machine(), &with_cpuid_time(60_000.0)).findings;
    assert!(!format!("{bare:?}").contains("nested"), "{bare:?}");
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
