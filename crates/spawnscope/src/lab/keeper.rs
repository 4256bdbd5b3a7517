//! A process that removes the lab's folder when bench is gone, of whatever: a second Ctrl-C, or a signal that nobody can catch.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use nix::sys::signal::{SigHandler, Signal, signal};

use super::worker;

/// What a keeper's setting begins with, where workers have JSON; the folder follows.
pub const SETTING: &str = "keep:";
/// What folders of the lab begin with: nothing else is removed.
pub(super) const PREFIX: &str = "spawnscope-lab-";
/// How often, and how far apart, it tries: workers that write there die when bench does, but not at once.
const REMOVALS: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Bench's side: as long as this is there, so is the folder.
pub(super) struct Keeper {
    child: Child,
    connection: Option<ChildStdin>,
}

impl Keeper {
    /// Of this folder; `None` where no process can be started, and then the folder of a killed bench stays.
    pub(super) fn start(folder: &Path) -> Option<Keeper> {
        let mut child = Command::new("/proc/self/exe")
            .arg(worker::VERB)
            .arg(format!("{SETTING}{}", folder.display()))
            .current_dir("/")
            // A Ctrl-C is for bench.
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

/// The keeper's side: waits for the connection to be closed, and removes the folder unless that is done.
///
/// # Errors
/// When it is not a folder of the lab, or cannot be removed.
pub fn keep(folder: &Path) -> io::Result<()> {
    let is_ours = |name: &std::ffi::OsStr| name.as_bytes().starts_with(PREFIX.as_bytes());
    if !folder.is_absolute() || !folder.file_name().is_some_and(is_ours) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a folder of the lab"));
    }
    for ended_by in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: no handler of ours is run.
        unsafe { signal(ended_by, SigHandler::SigIgn) }?;
    }
    io::stdin().read_to_end(&mut Vec::new())?;
    for _ in 0..REMOVALS {
        match fs::remove_dir_all(folder) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => return Ok(()),
            Err(_) => thread::sleep(PAUSE),
        }
    }
    fs::remove_dir_all(folder)
}
