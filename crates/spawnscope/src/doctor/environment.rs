//! What the machine is itself run by: a container, a virtual machine, WSL, gVisor. What cannot be changed from within is not
//! advised.

use super::machine::Machine;

/// Where it runs; nothing of this is set on bare metal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The kernel is gVisor's, a program that answers system calls itself.
    pub is_gvisor: bool,
    /// The Windows Subsystem for Linux, 1 or 2.
    pub wsl: Option<u8>,
    /// The kind of container.
    pub container: Option<String>,
    /// The hypervisor, by the name it gives itself.
    pub hypervisor: Option<String>,
    /// Nothing tells whether there is one.
    pub is_hypervisor_unseen: bool,
}

impl Environment {
    /// Reads the marks that each leaves.
    #[must_use]
    pub fn of(machine: &Machine) -> Environment {
        let hypervisor = hypervisor(machine);
        Environment {
            is_hypervisor_unseen: hypervisor == Hypervisor::Unseen,
            hypervisor: match hypervisor {
                Hypervisor::Named(name) => Some(name),
                Hypervisor::None | Hypervisor::Unseen => None,
            },
            is_gvisor: is_gvisor(machine),
            wsl: wsl(machine),
            container: container(machine),
        }
    }

    /// Whether settings of the kernel are somebody else's to make.
    #[must_use]
    pub fn is_kernel_foreign(&self) -> bool {
        self.is_gvisor || self.wsl == Some(1) || self.container.is_some()
    }

    /// Where to make settings of the kernel, for the end of a sentence.
    #[must_use]
    pub fn where_settings_are_made(&self) -> &'static str {
        if self.is_kernel_foreign() {
            "on the host: in here it cannot be changed"
        } else {
            "as root"
        }
    }
}

fn is_gvisor(machine: &Machine) -> bool {
    let version = machine.text("/proc/version").unwrap_or_default();
    // It pretends to be a Linux of a fixed date, and newer ones add their name to the release.
    version.contains("-gvisor") || version.contains("#1 SMP Sun Jan 10 15:06:54 PST 2016")
}

fn wsl(machine: &Machine) -> Option<u8> {
    let release = machine.text("/proc/sys/kernel/osrelease")?;
    match release.to_lowercase() {
        release if release.contains("wsl2") || release.contains("microsoft-standard") => Some(2),
        release if release.contains("microsoft") => Some(1),
        _ => None,
    }
}

/// The numbers of the first pid, uts and ipc namespaces, which no container has all of.
const FIRST_NAMESPACES: [(&str, &str); 3] = [
    ("pid", "pid:[4026531836]"),
    ("uts", "uts:[4026531838]"),
    ("ipc", "ipc:[4026531839]"),
];

/// Whether processes are numbered as in the machine's first processes. A tree without namespaces counts as one.
pub(super) fn is_in_first_pid_namespace(machine: &Machine) -> bool {
    let (kind, first) = FIRST_NAMESPACES[0];
    machine
        .link(format!("/proc/self/ns/{kind}"))
        .is_none_or(|link| link.as_os_str() == first)
}

/// Whether marks of a container are left overs: the image of a virtual machine may be made of a container's.
fn is_in_first_namespaces(machine: &Machine) -> bool {
    FIRST_NAMESPACES.iter().all(|(kind, first)| {
        machine
            .link(format!("/proc/self/ns/{kind}"))
            .is_some_and(|link| link.as_os_str() == *first)
    })
}

fn container(machine: &Machine) -> Option<String> {
    if is_in_first_namespaces(machine) {
        return None;
    }
    // What runs the container says so to its first process; only that one's user can read it.
    let said = machine.text("/proc/1/environ").and_then(|environment| {
        let mut variables = environment.split('\0');
        variables.find_map(|variable| Some(variable.strip_prefix("container=")?.to_owned()))
    });
    if let Some(name) = said.filter(|name| !name.is_empty()) {
        return Some(name);
    }
    if machine.variable("KUBERNETES_SERVICE_HOST").is_some() {
        return Some("kubernetes".to_owned());
    }
    if machine.exists("/run/.containerenv") {
        return Some("podman".to_owned());
    }
    if machine.exists("/.dockerenv") {
        return Some("docker".to_owned());
    }
    let groups = machine.text("/proc/1/cgroup")?;
    let named = ["kubepods", "docker", "containerd", "lxc", "libpod"];
    named
        .into_iter()
        .find(|name| groups.contains(&format!("/{name}")))
        .map(str::to_owned)
}

#[derive(PartialEq, Eq)]
enum Hypervisor {
    None,
    Named(String),
    Unseen,
}

/// What the makers of virtual machines write into the firmware's tables (`sys_vendor`, `product_name`), in capitals or not.
const VIRTUAL: [&str; 15] = [
    "kvm",
    "qemu",
    "vmware",
    "innotek gmbh",
    "virtualbox",
    "xen",
    "bochs",
    "parallels",
    "bhyve",
    "apple virtualization",
    "google compute engine",
    "amazon ec2",
    "openstack",
    "alibaba cloud ecs",
    // Hyper-V's, below Microsoft's own name.
    "virtual machine",
];
/// Machines of Amazon that a customer has for himself are named so.
const WHOLE: &str = ".metal";

fn hypervisor(machine: &Machine) -> Hypervisor {
    let product = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| machine.text(format!("/sys/class/dmi/id/{name}")))
        .filter(|name| !name.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let by_name = || {
        let product = Some(product.clone()).filter(|product| !product.is_empty());
        product.or_else(|| machine.text("/sys/hypervisor/type"))
    };
    let processor = machine.text("/proc/cpuinfo").unwrap_or_default();
    if let Some(flags) = processor.lines().find(|line| line.starts_with("flags")) {
        return match flags.split_whitespace().any(|flag| flag == "hypervisor") {
            true => Hypervisor::Named(by_name().unwrap_or_else(|| "of unknown name".to_owned())),
            false => Hypervisor::None,
        };
    }
    // Other processors do not say so themselves.
    let words = product.to_lowercase();
    if words.contains(WHOLE) {
        return Hypervisor::None;
    }
    if VIRTUAL.iter().any(|name| words.contains(name)) {
        return Hypervisor::Named(product);
    }
    let told = machine.text("/sys/hypervisor/type").or_else(|| in_device_tree(machine));
    told.map_or(Hypervisor::Unseen, Hypervisor::Named)
}

/// What a hypervisor writes into the tree of devices that it hands to its guest.
fn in_device_tree(machine: &Machine) -> Option<String> {
    let compatible = |node: &str| machine.text(format!("/proc/device-tree/{node}compatible"));
    let names = compatible("hypervisor/").or_else(|| {
        // A machine that QEMU makes up.
        compatible("").filter(|names| names.contains("linux,dummy-virt"))
    })?;
    let name = names.split('\0').find(|name| !name.is_empty())?;
    Some(name.to_owned())
}
