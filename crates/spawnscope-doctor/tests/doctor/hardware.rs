//! Tests of the checks `cpuid`, `governor` and `environment`, and of the fork time in `large-parents`.

use spawnscope_data::event::{Constant, Nanos};
use spawnscope_doctor::environment::Environment;
use spawnscope_doctor::{Measured, Severity};

use crate::tree::{Tree, constant, diagnose, expect_finding, expect_nothing, fix, usual_measurements};

/// Measurements of a machine on which a CPUID instruction takes `ns`, and each program start has 43 of them.
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
    expect_finding("cpuid", &machine, &with_cpuid_time(60_000.0), Severity::Problem, &["runs inside another"]);
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

fn with_governor(governor: &str, driver: &str) -> Tree {
    let directory = "sys/devices/system/cpu/cpu0/cpufreq";
    Tree::new()
        .file(&format!("{directory}/scaling_governor"), governor)
        .file(&format!("{directory}/scaling_driver"), driver)
}

#[test]
fn governors_that_keep_the_processor_slow_are_reported() {
    expect_finding(
        "governor",
        &with_governor("powersave", "acpi-cpufreq").machine(),
        &usual_measurements(),
        Severity::Problem,
        &["lowest frequency"],
    );
    expect_finding(
        "governor",
        &with_governor("ondemand", "acpi-cpufreq").machine(),
        &usual_measurements(),
        Severity::Note,
        &["late"],
    );
    for (governor, driver) in
        [("powersave", "intel_pstate"), ("schedutil", "acpi-cpufreq"), ("performance", "acpi-cpufreq")]
    {
        expect_nothing("governor", &with_governor(governor, driver).machine(), &usual_measurements());
    }
    expect_nothing("governor", &Tree::new().machine(), &usual_measurements());
    let guest = with_governor("powersave", "acpi-cpufreq").file("proc/cpuinfo", "flags\t: fpu hypervisor\n");
    expect_nothing("governor", &guest.machine(), &usual_measurements());
}

#[test]
fn environments_are_recognised_by_their_traces() {
    for version in ["4.4.0", "4.19.0-gvisor"] {
        let version = format!("Linux version {version} #1 SMP Sun Jan 10 15:06:54 PST 2016");
        // The CPU flags in gVisor are those of the host, so they show the hypervisor below the host, which is not reported.
        let gvisor = Tree::new().file("proc/version", version);
        let gvisor = gvisor.file("proc/cpuinfo", "flags\t: fpu hypervisor\n");
        expect_finding("environment", &gvisor.machine(), &usual_measurements(), Severity::Problem, &["gVisor"]);
    }
    for (release, severity, words) in [
        ("4.4.0-19041-Microsoft", Severity::Problem, &["WSL 1"][..]),
        ("5.15.90.1-microsoft-standard-WSL2", Severity::Note, &["WSL 2", "/mnt/c"]),
    ] {
        let wsl = Tree::new().file("proc/sys/kernel/osrelease", release);
        expect_finding("environment", &wsl.machine(), &usual_measurements(), severity, words);
    }
    let podman = Tree::new().file("run/.containerenv", "");
    expect_finding("environment", &podman.machine(), &usual_measurements(), Severity::Note, &["podman"]);
    let found = Tree::new().file("proc/1/environ", "PATH=/bin\0container=systemd-nspawn\0");
    expect_finding("environment", &found.machine(), &usual_measurements(), Severity::Note, &["systemd-nspawn"]);
    let pod = Tree::new().file("proc/1/cgroup", "4:pids:/kubepods/besteffort/pod1\n");
    expect_finding("environment", &pod.machine(), &usual_measurements(), Severity::Note, &["kubepods"]);
    let guest = Tree::new()
        .file("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme hypervisor lm\n")
        .file("sys/class/dmi/id/sys_vendor", "QEMU\n");
    expect_finding(
        "environment",
        &guest.machine(),
        &usual_measurements(),
        Severity::Note,
        &["virtual machine (QEMU)", "nested virtualization: unknown"],
    );
}

fn arm() -> Tree {
    Tree::new().file("proc/cpuinfo", "processor\t: 0\nFeatures\t: fp asimd cpuid\nCPU part\t: 0xd40\n")
}

fn arm_board(vendor: &str, product: &str) -> Tree {
    arm()
        .file("sys/class/dmi/id/sys_vendor", format!("{vendor}\n"))
        .file("sys/class/dmi/id/product_name", format!("{product}\n"))
}

/// On other architectures than x86, /proc/cpuinfo does not show hypervisors.
#[test]
fn on_arm_a_hypervisor_is_recognised_by_the_firmware_or_is_unknown() {
    for (vendor, product) in [
        ("QEMU", "KVM Virtual Machine"),
        ("Amazon EC2", "c7g.large"),
        ("Microsoft Corporation", "Virtual Machine"),
        ("Apple Inc.", "Apple Virtualization Generic Platform"),
    ] {
        let tree = arm_board(vendor, product);
        let named = format!("virtual machine ({vendor} {product})");
        let words = [named.as_str(), "nested virtualization: unknown"];
        expect_finding("environment", &tree.machine(), &usual_measurements(), Severity::Note, &words);
        assert!(diagnose("environment", &tree.machine(), &usual_measurements()).not_examined.is_empty());
    }
    for (file, text, name) in [
        ("proc/device-tree/hypervisor/compatible", "linux,kvm\0", "linux,kvm"),
        ("proc/device-tree/hypervisor/compatible", "xen,xen-4.17\0xen,xen\0", "xen,xen-4.17"),
        ("proc/device-tree/compatible", "linux,dummy-virt\0", "linux,dummy-virt"),
        ("sys/hypervisor/type", "xen\n", "xen"),
    ] {
        let tree = arm().file(file, text);
        let named = format!("virtual machine ({name})");
        expect_finding("environment", &tree.machine(), &usual_measurements(), Severity::Note, &[&named]);
    }
    expect_nothing("environment", &arm_board("Amazon EC2", "c7g.metal").machine(), &usual_measurements());
    let raspberry = arm().file("proc/device-tree/compatible", "raspberrypi,4-model-b\0brcm,bcm2711\0");
    for tree in [arm(), arm_board("Ampere", "Mt. Jade"), raspberry, Tree::new()] {
        let diagnosis = diagnose("environment", &tree.machine(), &usual_measurements());
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.not_examined[0].what.contains("whether this is a virtual machine"), "{diagnosis:?}");
    }
}

fn guest(flags: &str, product: &str) -> Tree {
    Tree::new()
        .file("proc/cpuinfo", format!("processor\t: 0\nflags\t\t: fpu hypervisor {flags}\n"))
        .file("sys/class/dmi/id/sys_vendor", product)
}

/// Returns whether a guest is found to be nested, and the evidence.
fn examine_guest(tree: &Tree, measured: &Measured) -> (bool, String) {
    let words = ["virtual machine", "translated twice"];
    let finding = expect_finding("environment", &tree.machine(), measured, Severity::Note, &words);
    (finding.title.contains("inside another one"), finding.evidence.join(" "))
}

#[test]
fn nested_hypervisors_are_recognised_by_the_time_of_an_exit() {
    let plain = guest("lm", "QEMU\n");
    for ns in [8_000.0, 60_000.0] {
        let (is_nested, evidence) = examine_guest(&plain, &with_cpuid_time(ns));
        assert!(is_nested && evidence.contains("one hypervisor runs inside another, since"), "{evidence}");
    }
    for ns in [600.0, 2_500.0] {
        let (is_nested, evidence) = examine_guest(&plain, &with_cpuid_time(ns));
        assert!(!is_nested && evidence.contains("without another in between"), "{evidence}");
    }
    let untimed = Measured { constants: Vec::new(), ..usual_measurements() };
    for (tree, measured, why) in [
        (&plain, with_cpuid_time(4_300.0), "takes 4.30 us; at most 2.50 us"),
        (&plain, with_cpuid_time(60.0), "does not cause a VM exit"),
        (&plain, untimed, "could not be timed"),
        (&guest("tdx_guest", "QEMU\n"), with_cpuid_time(20_000.0), "encrypted memory (tdx_guest)"),
        (&guest("lm", "VirtualBox\n"), with_cpuid_time(20_000.0), "VirtualBox alone can be that slow"),
    ] {
        let (is_nested, evidence) = examine_guest(tree, &measured);
        assert!(
            !is_nested && evidence.contains("nested virtualization: unknown") && evidence.contains(why),
            "{evidence}"
        );
    }
    // A busy machine only adds time.
    let mut busy = with_cpuid_time(60_000.0);
    busy.constants.last_mut().unwrap().low_ns = Some(1_000.0);
    assert!(examine_guest(&plain, &busy).1.contains("without another in between"));
    // The check `cpuid` reports the same sentences.
    for (ns, words) in
        [(60_000.0, "one hypervisor runs inside another, since"), (4_300.0, "nested virtualization: unknown")]
    {
        let found = diagnose("cpuid", &plain.machine(), &with_cpuid_time(ns)).findings;
        assert!(found[0].evidence.join(" ").contains(words), "{found:?}");
    }
}

#[test]
fn all_checks_report_the_same_fork_time_per_mebibyte() {
    let tree = guest("lm", "QEMU\n").process(10, 1, "server", 4096);
    for check in ["environment", "large-parents"] {
        let words = ["a fork takes 30.0 us for each MiB in 4 KiB pages, because it copies their page tables"];
        expect_finding(check, &tree.machine(), &usual_measurements(), Severity::Note, &words);
    }
}

#[test]
fn sentences_omit_unknown_times() {
    let gvisor = Tree::new().file("proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016");
    let guest =
        Tree::new().file("proc/cpuinfo", "flags\t\t: fpu hypervisor\n").file("sys/class/dmi/id/sys_vendor", "QEMU\n");
    for tree in [gvisor, guest] {
        let found = diagnose("environment", &tree.machine(), &Measured::default()).findings;
        let evidence = found[0].evidence.join(" ") + " ";
        assert!(!evidence.contains(" - ") && !evidence.contains("takes "), "{evidence}");
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
    expect_nothing("environment", &image.machine(), &usual_measurements());
}

#[test]
fn the_fix_for_huge_pages_in_a_container_is_on_the_host() {
    let tree = Tree::new()
        .process(10, 1, "server", 4096)
        .file("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]");
    assert!(fix("large-parents", &tree).contains("as root"));
    assert!(fix("large-parents", &tree.file(".dockerenv", "")).contains("on the host"));
}
