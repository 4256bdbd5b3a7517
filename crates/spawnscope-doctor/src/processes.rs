//! The processes of a machine that are visible in /proc.

use std::collections::HashMap;

use super::machine::Machine;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The process name, at most 15 bytes.
    pub(super) name: String,
    parent: u32,
    /// Resident anonymous memory, whose page tables a fork copies.
    pub(super) anonymous_bytes: u64,
    /// Private writable memory, resident or not. A fork may have to commit as much memory again for
    /// the child.
    pub(super) data_bytes: u64,
}

impl Process {
    /// Returns the path of a file in the process's directory in /proc.
    pub(super) fn file(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.pid)
    }
}

pub(super) fn all(machine: &Machine) -> Vec<Process> {
    let pids = machine.names("/proc").into_iter().filter_map(|name| name.parse().ok());
    pids.filter_map(|pid| read(machine, pid)).collect()
}

/// Returns the processes of a session on the real machine, except those that have ended.
pub(super) fn running_in_session(session: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let running = pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // `PID (NAME) STATE PARENT GROUP SESSION ...`; the name may contain any bytes.
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<&str> = after_name.split_whitespace().take(4).collect();
        matches!(fields[..], [state, _, _, id] if state != "Z" && state != "X" && id == session.to_string())
    });
    running.collect()
}

/// Returns how many children each process has now.
pub(super) fn child_counts(processes: &[Process]) -> HashMap<u32, u64> {
    let mut children = HashMap::new();
    for process in processes {
        *children.entry(process.parent).or_default() += 1;
    }
    children
}

fn read(machine: &Machine, pid: u32) -> Option<Process> {
    let status = machine.text(format!("/proc/{pid}/status"))?;
    let [anonymous_bytes, data_bytes] =
        ["RssAnon", "VmData"].map(|name| field_bytes(&status, name).unwrap_or_default());
    Some(Process {
        pid,
        name: field(&status, "Name")?.to_owned(),
        parent: field(&status, "PPid")?.parse().ok()?,
        anonymous_bytes,
        data_bytes,
    })
}

pub(super) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns a number of bytes, which the kernel shows in kilobytes.
pub(super) fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let value = field(text, name)?.trim_end_matches(" kB");
    Some(value.parse::<u64>().ok()? * 1024)
}
