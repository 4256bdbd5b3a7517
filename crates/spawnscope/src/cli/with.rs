//! Finds the processes of `record --with`: daemons that are already running, by pid or by name,
//! with their descendants.

use std::collections::{BTreeSet, HashSet};

use anyhow::{Result, bail};

use crate::analyze::model::launch::base_name;
use crate::event::Pid;
use crate::process::pidfd;
use crate::procfs;

/// Returns the processes that the user named, and their descendants, except the recorder and its
/// descendants.
pub fn find(wanted: &[String]) -> Result<Vec<Pid>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let own_processes: HashSet<Pid> = procfs::tree(Pid(std::process::id().cast_signed())).into_iter().collect();
    let mut found = BTreeSet::new();
    for text in wanted {
        let named: Vec<Pid> = match text.parse() {
            Ok(pid) => vec![check_exists(Pid(pid))?],
            Err(_) => procfs::processes()
                .filter(|pid| !own_processes.contains(pid) && has_name(*pid, text.as_bytes()))
                .collect(),
        };
        if named.is_empty() {
            bail!(
                "--with {text}: no process has this name; start the daemon before the recording, or give its pid (`ps -e` lists \
                 both)"
            );
        }
        found.extend(named.into_iter().flat_map(procfs::tree));
    }
    Ok(found.into_iter().filter(|pid| !own_processes.contains(pid)).collect())
}

/// Returns the pid. Fails if no process has it.
fn check_exists(pid: Pid) -> Result<Pid> {
    match pidfd(pid) {
        Ok(_) => Ok(pid),
        Err(error) => bail!("--with {}: no process has this pid ({error})", pid.0),
    }
}

/// Whether a process has this name. Its names are that of its main thread, which the kernel cuts to
/// 15 bytes, and the base name of its first argument.
fn has_name(pid: Pid, wanted: &[u8]) -> bool {
    procfs::name(pid).is_some_and(|name| name == wanted)
        || procfs::arguments(pid).first().is_some_and(|first| base_name(first) == wanted)
}
