//! Detects whether this process runs in a container, in a virtual machine, in WSL or on gVisor. The
//! doctor does not advise changes that are impossible from inside.

use super::machine::Machine;

/// The environment of this process. On bare metal, every field is `false` or `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Whether the kernel is gVisor, a user-space program that handles system calls.
    pub is_gvisor: bool,
    /// The version of the Windows Subsystem for Linux, 1 or 2.
    pub wsl: Option<u8>,
    pub container: Option<String>,
    /// The name of the hypervisor. Only x86 processors show that there is one.
    pub hypervisor: Option<String>,
}

impl Environment {
    pub fn detect(machine: &Machine) -> Environment {
        Environment {
            is_gvisor: is_gvisor(machine),
            wsl: wsl(machine),
            container: container(machine),
            hypervisor: hypervisor(machine),
        }
    }

    /// Returns a sentence about what surrounds this process; `None` on Linux on bare metal. It
    /// explains times, but is not a finding, since nothing inside can change it.
    pub fn description(&self) -> Option<String> {
        let container = self.container.as_ref().map(|kind| format!("a container ({kind})"));
        // The CPU flags in gVisor are those of the host, so they would show the hypervisor below
        // the host.
        let hypervisor = self.hypervisor.as_ref().filter(|_| !self.is_gvisor);
        let hypervisor = hypervisor.map(|name| format!("a virtual machine ({name})"));
        let kernel = match self.wsl {
            _ if self.is_gvisor => Some("gVisor, whose kernel is a program: system calls take several times longer"),
            Some(1) => Some("WSL 1, where Windows creates each process: WSL 2 launches as fast as Linux"),
            _ => None,
        };
        let parts: Vec<String> = container.into_iter().chain(hypervisor).chain(kernel.map(str::to_owned)).collect();
        let host = "; the host's kernel settings and scanners can only be examined there";
        let host = if self.container.is_some() { host } else { "" };
        (!parts.is_empty()).then(|| format!("this is {}{host}", parts.join(" in ")))
    }

    /// Returns where to change kernel settings, to be inserted into a sentence.
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
    // gVisor claims to be a Linux kernel with a fixed build date. Newer versions add their name to
    // the release.
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

/// The links of the initial pid, uts and ipc namespaces. Each container has its own namespace of at
/// least one of these types.
const INITIAL_NAMESPACES: [(&str, &str); 3] =
    [("pid", "pid:[4026531836]"), ("uts", "uts:[4026531838]"), ("ipc", "ipc:[4026531839]")];

/// Returns whether this process is in the initial namespaces, and thus not in a container. There
/// may be traces of a container nevertheless, since the image of a virtual machine may be built
/// from a container image.
fn is_in_initial_namespaces(machine: &Machine) -> bool {
    INITIAL_NAMESPACES.iter().all(|(kind, initial)| {
        machine.link(format!("/proc/self/ns/{kind}")).is_some_and(|link| link.as_os_str() == *initial)
    })
}

fn container(machine: &Machine) -> Option<String> {
    if is_in_initial_namespaces(machine) {
        return None;
    }
    // Container managers set this variable for process 1. Only the user of process 1 and root can
    // read it.
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

fn hypervisor(machine: &Machine) -> Option<String> {
    let processor = machine.text("/proc/cpuinfo")?;
    let flags = processor.lines().find(|line| line.starts_with("flags"))?;
    flags.split_whitespace().find(|flag| *flag == "hypervisor")?;
    let name = |file| machine.text(file).filter(|name| !name.is_empty());
    let firmware = ["/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"].into_iter().filter_map(name);
    let firmware = firmware.collect::<Vec<_>>().join(" ");
    let name = Some(firmware).filter(|name| !name.is_empty()).or_else(|| name("/sys/hypervisor/type"));
    Some(name.unwrap_or_else(|| "unidentified hypervisor".to_owned()))
}
