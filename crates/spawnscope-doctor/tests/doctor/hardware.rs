//! Tests of the description of what surrounds the process.

use spawnscope_doctor::environment::Environment;

use crate::tree::Tree;

#[test]
fn kernels_that_are_not_linux_are_described() {
    let described = |path: &str, text: &str| {
        // The CPU flags in gVisor are those of the host, so they show the hypervisor below the
        // host, which is not described.
        let tree = Tree::new().file(path, text).file("proc/cpuinfo", "flags\t: fpu hypervisor\n");
        Environment::detect(&tree.machine()).description().unwrap_or_default()
    };
    for version in ["4.4.0", "4.19.0-gvisor"] {
        let version = format!("Linux version {version} #1 SMP Sun Jan 10 15:06:54 PST 2016");
        assert!(described("proc/version", &version).starts_with("this is gVisor"));
    }
    let release = "proc/sys/kernel/osrelease";
    assert!(described(release, "4.4.0-19041-Microsoft").contains("WSL 1"));
    assert!(!described(release, "5.15.90.1-microsoft-standard-WSL2").contains("WSL"));
}

#[test]
fn containers_and_virtual_machines_are_described() {
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
        let description = Environment::detect(&tree.machine()).description().unwrap_or_default();
        assert!(description.contains(words), "{description}");
    }
}

#[test]
fn bare_metal_is_not_described_even_if_its_image_was_built_for_containers() {
    let bare = Tree::new().file("proc/cpuinfo", "flags\t: fpu vme\n").file("proc/version", "Linux version 6.1.0");
    assert_eq!(Environment::detect(&bare.machine()), Environment::default());
    let image = Tree::new()
        .file("proc/cpuinfo", "flags\t: fpu vme\n")
        .file(".dockerenv", "")
        .link("proc/self/ns/pid", "pid:[4026531836]")
        .link("proc/self/ns/uts", "uts:[4026531838]")
        .link("proc/self/ns/ipc", "ipc:[4026531839]");
    assert_eq!(Environment::detect(&image.machine()).description(), None);
}
