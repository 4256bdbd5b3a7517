//! The keeper: a process that removes the lab's directory, however bench ends, even by a second
//! Ctrl-C or SIGKILL.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use super::worker;
use spawnscope_system::launch_timing::keeper::{ignore_requests_to_end, remove_when_closed};

/// The prefix of a keeper's argument; the directory follows it. The argument of a worker is JSON
/// instead.
pub const ARGUMENT_PREFIX: &str = "keep:";
/// The prefix of the names of the lab's directories. The keeper removes no directory without it.
pub(super) const DIRECTORY_PREFIX: &str = "spawnscope-lab-";
/// Maximum number of attempts to remove the directory. Workers that write there die with bench, but
/// not immediately.
const MAX_ATTEMPTS: usize = 100;
/// The time between attempts to remove the directory.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(20);

/// Bench's handle to the keeper. While it exists, the keeper does not remove the directory.
pub(super) struct Keeper {
    child: Child,
    connection: Option<ChildStdin>,
}

impl Keeper {
    /// Starts a keeper for this directory; returns `None` if no process can be started. Then the
    /// directory remains if bench is killed.
    pub(super) fn start(directory: &Path) -> Option<Keeper> {
        let mut child = Command::new("/proc/self/exe")
            .arg(worker::VERB)
            .arg(format!("{ARGUMENT_PREFIX}{}", directory.display()))
            .current_dir("/")
            // Ctrl-C must only reach bench.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let connection = child.stdin.take();
        Some(Keeper { child, connection })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.connection.take());
        let _ = self.child.wait();
    }
}

/// Does the work of the keeper's process. Waits until bench's end of the connection is closed,
/// which also happens when bench is killed, and removes the directory if it still exists.
///
/// # Errors
/// If the directory is not one of the lab's, or cannot be removed.
pub fn remove_when_bench_ends(directory: &Path) -> io::Result<()> {
    let name = directory.file_name().unwrap_or_default();
    if !directory.is_absolute() || !name.as_bytes().starts_with(DIRECTORY_PREFIX.as_bytes()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a directory of the lab"));
    }
    ignore_requests_to_end();
    if remove_when_closed(io::stdin().as_fd(), MAX_ATTEMPTS, REMOVAL_INTERVAL, || try_to_remove(directory)) {
        return Ok(());
    }
    fs::remove_dir_all(directory)
}

/// Removes a directory, and returns whether it is gone.
fn try_to_remove(directory: &Path) -> bool {
    match fs::remove_dir_all(directory) {
        Err(error) => error.kind() == io::ErrorKind::NotFound && !directory.exists(),
        Ok(()) => true,
    }
}
