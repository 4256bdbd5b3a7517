//! What the machine is itself run by: a container, a virtual machine, WSL, gVisor. What cannot be changed from within is not
//! advised.

use super::machine::Machine;

/// Where it runs; nothing of this is set on bare metal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The kernel is gVisor's, a program that answers system calls itself.
    pub is_gvisor: bool,
    /// The Windows Subsystem for Linux, 1 or 2.
    pub wsl: Option<u8>,
    /// The kind of container.
    pub container: Option<String>,
    /// The hypervisor, by the name it gives itself.
    pub hypervisor: Option<String>,
}

impl Surroundings {
    /// Reads the marks that each leaves.
    #[must_use]
    pub fn of(machine: &Machine) -> Surroundings {
        Surroundings {
            is_gvisor: is_gvisor(machine),
            wsl: wsl(machine),
            container: container(machine),
            hypervisor: hypervisor(machine),
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

fn hypervisor(machine: &Machine) -> Option<String> {
    let processor = machine.text("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
        return None;
    }
    let product = ["sys_vendor", "product_name"]
        .iter()
        .filter_map(|name| machine.text(format!("/sys/class/dmi/id/{name}")))
        .filter(|name| !name.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let product = Some(product).filter(|product| !product.is_empty());
    Some(
        product
            .or_else(|| machine.text("/sys/hypervisor/type"))
            .unwrap_or_else(|| "of unknown name".to_owned()),
    )
}
