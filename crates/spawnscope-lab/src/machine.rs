//! The properties of the machine, and its load, that a reader must know to compare reports.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::usable_memory::meminfo;

/// The machine of a report. Properties that cannot be determined are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Machine {
    pub processor: Option<String>,
    pub cpus: u64,
    pub memory_bytes: Option<u64>,
    pub kernel: String,
    pub libc: Option<String>,
    /// Whether the machine is virtual, which makes page tables more expensive.
    pub is_virtual: Option<bool>,
    pub huge_pages: Option<String>,
    pub as_root: bool,
    pub spawnscope: String,
    pub load_before: Option<f64>,
    /// The load average of the last minute of the run. It includes the lab's own load.
    pub load_after: Option<f64>,
}

impl Machine {
    pub fn read() -> Machine {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
        Machine {
            processor: processor_field(&processors, "model name"),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory_bytes: meminfo(Path::new("/"), "MemTotal"),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            libc: libc_version(),
            is_virtual: is_virtual(processor_field(&processors, "flags").as_deref(), Path::new("/")),
            huge_pages: huge_pages.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
            as_root: rustix::process::geteuid().is_root(),
            spawnscope: env!("CARGO_PKG_VERSION").to_owned(),
            load_before: read_load(),
            load_after: None,
        }
    }
}

pub fn read_load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn processor_field(processors: &str, name: &str) -> Option<String> {
    let line = processors.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Returns whether the machine is virtual, according to the CPU flags on x86, or to files on other
/// architectures.
fn is_virtual(flags: Option<&str>, root: &Path) -> Option<bool> {
    let by_flags = flags.map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let files = ["sys/hypervisor/type", "proc/device-tree/hypervisor"];
    by_flags.or_else(|| files.iter().any(|file| root.join(file).exists()).then_some(true))
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: the function returns a constant string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_str().ok()?))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_virtual_by_its_flags_or_files_or_unknown() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(is_virtual(Some("fpu hypervisor sse"), root.path()), Some(true));
        assert_eq!(is_virtual(Some("fpu sse"), root.path()), Some(false));
        assert_eq!(is_virtual(None, root.path()), None, "no evidence");
        fs::create_dir_all(root.path().join("sys/hypervisor")).unwrap();
        fs::write(root.path().join("sys/hypervisor/type"), "xen\n").unwrap();
        assert_eq!(is_virtual(None, root.path()), Some(true));
    }
}
