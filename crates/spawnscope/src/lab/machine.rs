//! Which machine it was: what a reader must know to compare figures.

use std::fs;

use serde::{Deserialize, Serialize};

/// The machine; what it does not say is unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: Option<String>,
    /// Processors that may be used.
    pub cpus: u64,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: String,
    /// The C library.
    pub libc: Option<String>,
    /// Whether it is a guest of a hypervisor, where page tables are dearer.
    pub is_virtual: bool,
    /// The setting of transparent huge pages.
    pub huge_pages: Option<String>,
    /// Whether it was measured as root.
    pub as_root: bool,
    /// The version of spawnscope.
    pub spawnscope: String,
}

impl Machine {
    /// This machine.
    #[must_use]
    pub fn here() -> Machine {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let line = |name: &str| {
            let line = processors.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok();
        Machine {
            processor: line("model name"),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory_bytes: memory("MemTotal:"),
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            libc: libc_version(),
            is_virtual: line("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            huge_pages: huge_pages.and_then(|text| Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())),
            as_root: rustix::process::geteuid().is_root(),
            spawnscope: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Memory that could be had now, in bytes.
#[must_use]
pub fn available_memory() -> Option<u64> {
    memory("MemAvailable:")
}

fn memory(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(target_env = "gnu")]
fn libc_version() -> Option<String> {
    // SAFETY: a constant string of the library.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    Some(format!("glibc {}", version.to_str().ok()?))
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Option<String> {
    None
}
