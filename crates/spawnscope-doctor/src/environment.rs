//! Detects whether this process runs in a container, in a virtual machine, in WSL or on gVisor. The doctor does not advise changes that are
//! impossible from inside.

use super::machine::Machine;

/// The environment of this process. On bare metal, every field is `false` or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Whether the kernel is gVisor, a user-space program that handles system calls.
    pub is_gvisor: bool,
    /// The version of the Windows Subsystem for Linux, 1 or 2.
    pub wsl: Option<u8>,
    /// The kind of container, such as `docker`.
    pub container: Option<String>,
    /// The name that the hypervisor reports.
    pub hypervisor: Option<String>,
    /// Whether it is unknown if there is a hypervisor.
    pub is_hypervisor_unknown: bool,
}

impl Environment {
    /// Detects the environment by the traces that each kind leaves in files and variables.
    #[must_use]
    pub fn detect(machine: &Machine) -> Environment {
        let hypervisor = hypervisor(machine);
        Environment {
            is_hypervisor_unknown: hypervisor == Hypervisor::Unknown,
            hypervisor: match hypervisor {
                Hypervisor::Named(name) => Some(name),
                Hypervisor::None | Hypervisor::Unknown => None,
            },
            is_gvisor: is_gvisor(machine),
            wsl: wsl(machine),
            container: container(machine),
        }
    }

    /// Returns where to change kernel settings, to be inserted into a sentence.
    #[must_use]
    pub fn where_settings_are_made(&self) -> &'static str {
        // Inside these, kernel settings cannot be changed.
        if self.is_gvisor || self.wsl == Some(1) || self.container.is_some() {
            "on the host (not possible from inside)"
        } else {
            "as root"
        }
    }
}

fn is_gvisor(machine: &Machine) -> bool {
    let version = machine.text("/proc/version").unwrap_or_default();
    // gVisor claims to be a Linux kernel with a fixed build date. Newer versions add their name to the release.
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

/// The links of the initial pid, uts and ipc namespaces. Each container has its own namespace of at least one of these types.
const INITIAL_NAMESPACES: [(&str, &str); 3] =
    [("pid", "pid:[4026531836]"), ("uts", "uts:[4026531838]"), ("ipc", "ipc:[4026531839]")];

/// Returns whether this process is in the initial pid namespace. A test machine without namespaces counts as being in it.
pub(super) fn is_in_initial_pid_namespace(machine: &Machine) -> bool {
    let (kind, initial) = INITIAL_NAMESPACES[0];
    machine.link(format!("/proc/self/ns/{kind}")).is_none_or(|link| link.as_os_str() == initial)
}

/// Returns whether this process is in the initial namespaces, and thus not in a container. There may be traces of a container nevertheless,
/// since the image of a virtual machine may be built from a container image.
fn is_in_initial_namespaces(machine: &Machine) -> bool {
    INITIAL_NAMESPACES.iter().all(|(kind, initial)| {
        machine.link(format!("/proc/self/ns/{kind}")).is_some_and(|link| link.as_os_str() == *initial)
    })
}

fn container(machine: &Machine) -> Option<String> {
    if is_in_initial_namespaces(machine) {
        return None;
    }
    // Container managers set this variable for process 1. Only the user of process 1 and root can read it.
    let manager = machine.text("/proc/1/environ").and_then(|environment| {
        let mut variables = environment.split('\0');
        variables.find_map(|variable| Some(variable.strip_prefix("container=")?.to_owned()))
    });
    if let Some(name) = manager.filter(|name| !name.is_empty()) {
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
    named.into_iter().find(|name| groups.contains(&format!("/{name}"))).map(str::to_owned)
}

#[derive(PartialEq, Eq)]
enum Hypervisor {
    None,
    Named(String),
    Unknown,
}

/// Vendor and product names of virtual machines in the firmware tables (`sys_vendor`, `product_name`), in lower case.
const VIRTUAL_MACHINE_NAMES: [&str; 15] = [
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
    // Hyper-V, whose `product_name` is "Virtual Machine".
    "virtual machine",
];
/// Amazon's bare-metal instance types have this in their names.
const BARE_METAL: &str = ".metal";

fn hypervisor(machine: &Machine) -> Hypervisor {
    let product = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| machine.text(format!("/sys/class/dmi/id/{name}")))
        .filter(|name| !name.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let processor = machine.text("/proc/cpuinfo").unwrap_or_default();
    if let Some(flags) = processor.lines().find(|line| line.starts_with("flags")) {
        if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
            return Hypervisor::None;
        }
        let name = Some(product).filter(|product| !product.is_empty()).or_else(|| machine.text("/sys/hypervisor/type"));
        return Hypervisor::Named(name.unwrap_or_else(|| "unidentified hypervisor".to_owned()));
    }
    // On other architectures, the CPU flags do not show a hypervisor.
    let words = product.to_lowercase();
    if words.contains(BARE_METAL) {
        return Hypervisor::None;
    }
    if VIRTUAL_MACHINE_NAMES.iter().any(|name| words.contains(name)) {
        return Hypervisor::Named(product);
    }
    let name = machine.text("/sys/hypervisor/type").or_else(|| hypervisor_in_device_tree(machine));
    name.map_or(Hypervisor::Unknown, Hypervisor::Named)
}

/// Returns the name of the hypervisor in the device tree that it passes to its guest.
fn hypervisor_in_device_tree(machine: &Machine) -> Option<String> {
    let names = machine.text("/proc/device-tree/hypervisor/compatible").or_else(|| {
        // QEMU's machine type `virt`.
        machine.text("/proc/device-tree/compatible").filter(|names| names.contains("linux,dummy-virt"))
    })?;
    let name = names.split('\0').find(|name| !name.is_empty())?;
    Some(name.to_owned())
}
