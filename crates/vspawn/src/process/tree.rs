//! Kills a child and all its descendants, without a process group or cgroup that contains them.

use std::fs;

use super::Child;
use super::handle::Handle;
use crate::error::Error;

/// The maximum number of scans of `/proc`, in case a tree grows faster than it can be stopped.
const MAX_SCANS: usize = 64;

impl Child {
    /// Kills the child and all its descendants, and returns the number of descendants. Each process
    /// is stopped before its children are searched, so that none can escape by forking. A
    /// descendant whose parent ended before this call has another parent and is not found. To reach
    /// such descendants, give the child a process group or a cgroup.
    ///
    /// # Errors
    /// [`Stage::Kill`](crate::Stage::Kill) if the child itself cannot be signalled.
    ///
    /// ```
    /// let mut child = vspawn::Command::new("sh").args(["-c", "sleep 60 & sleep 60 & wait"]).spawn()?;
    /// # std::thread::sleep(std::time::Duration::from_millis(50));
    /// println!("{} descendants", child.kill_tree()?);
    /// assert!(!child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn kill_tree(&mut self) -> Result<usize, Error> {
        if self.was_waited_for() {
            return Ok(0);
        }
        self.signal(libc::SIGSTOP)?;
        let mut stopped: Vec<Handle> = Vec::new();
        for _ in 0..MAX_SCANS {
            if !self.stop_new_descendants(&mut stopped) {
                break;
            }
        }
        for process in &stopped {
            let _ = process.signal(libc::SIGKILL);
        }
        self.kill()?;
        Ok(stopped.len())
    }

    /// Scans all processes once, and stops those whose parent is the child or a known descendant.
    /// Returns whether it found any.
    fn stop_new_descendants(&self, stopped: &mut Vec<Handle>) -> bool {
        let mut found = false;
        for (pid, parent) in pids_and_parents() {
            let known = |pid: u32| pid == self.id() || stopped.iter().any(|other| other.pid == pid);
            if !known(parent) || known(pid) {
                continue;
            }
            // The pidfd refers to the process that has the pid now, so check again that it is our
            // descendant. Without a pidfd, the pid could be reused between this check and the
            // signals.
            if let Ok(process) = Handle::open(pid)
                && parent_of(pid) == Some(parent)
                && process.signal(libc::SIGSTOP).is_ok()
            {
                stopped.push(process);
                found = true;
            }
        }
        found
    }
}

/// Returns the pids of each process and of its parent, sorted by pid, so that most parents come
/// before their children.
fn pids_and_parents() -> Vec<(u32, u32)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut pids: Vec<u32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect()
}

/// Reads a process's parent, the fourth field of `/proc/PID/stat`. The second field, the name, may
/// contain any character, but ends with the last parenthesis.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(1)?.parse().ok()
}
