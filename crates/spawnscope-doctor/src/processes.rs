//! The processes of a machine that are visible in /proc.

use std::collections::HashMap;

use spawnscope_system::procfs::field;
pub(super) use spawnscope_system::procfs::field_bytes;

use super::machine::Machine;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The process name, at most 15 bytes.
    pub(super) name: String,
    parent: u32,
    /// Resident anonymous memory, whose page tables a fork copies.
    pub(super) anonymous_bytes: u64,
}

impl Process {
    pub(super) fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }
}

pub(super) fn all(machine: &Machine) -> Vec<Process> {
    let pids = machine.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    pids.filter_map(|pid| read(machine, pid)).collect()
}

pub(super) fn child_counts(processes: &[Process]) -> HashMap<u32, u64> {
    let mut children = HashMap::new();
    for process in processes {
        *children.entry(process.parent).or_default() += 1;
    }
    children
}

fn read(machine: &Machine, pid: u32) -> Option<Process> {
    let status = machine.text(format!("/proc/{pid}/status"))?;
    Some(Process {
        pid,
        name: field(&status, "Name")?.to_owned(),
        parent: field(&status, "PPid")?.parse().ok()?,
        anonymous_bytes: field_bytes(&status, "RssAnon").unwrap_or_default(),
    })
}
