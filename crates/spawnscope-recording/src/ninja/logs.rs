//! Opens ninja's logs. Their paths come from recorded processes, whose users may have put any file
//! there, while the recorder may be root. Therefore only regular files are read, the last component
//! must not be a link, and there is a time limit for file systems that do not answer.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::invocations::join;
use super::{Edge, Invocation, log};
use spawnscope_system::files::{Links, open_regular};

/// How long a recording waits for all logs together. Reading the log of 20,000 edges takes a few
/// milliseconds.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
const LOG_TIMEOUT: Duration = Duration::from_secs(2);
/// How many bytes of a build file are searched for the directory of the log.
const MAX_BUILD_FILE_BYTES: u64 = 256 << 10;

/// Reads the logs of the invocations of ninja in a recording.
#[derive(Debug)]
pub(crate) struct Logs {
    /// The remaining time to wait for logs.
    timeout: Duration,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs { timeout: TOTAL_TIMEOUT }
    }
}

impl Logs {
    /// Returns the edges of the commands of these invocations, as far as they are known.
    pub(crate) fn edges(&mut self, invocations: Vec<Invocation>) -> Vec<Edge> {
        invocations.into_iter().flat_map(|invocation| self.read(invocation)).collect()
    }

    fn read(&mut self, invocation: Invocation) -> Vec<Edge> {
        let begin = Instant::now();
        let timeout = self.timeout.min(LOG_TIMEOUT);
        if timeout.is_zero() {
            return Vec::new();
        }
        let (sender, receiver) = mpsc::channel();
        // The new thread inherits the file system ids of this thread, so under sudo it can read
        // only what the user may read. If it hangs, it is abandoned.
        let reader =
            thread::Builder::new().name("ninja's log".into()).spawn(move || drop(sender.send(edges(&invocation))));
        let edges = reader.map(|_| receiver.recv_timeout(timeout));
        self.timeout = self.timeout.saturating_sub(begin.elapsed());
        // If there is no log, or if it cannot be read, the edges are unknown.
        edges.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or_default()
    }
}

fn edges(invocation: &Invocation) -> io::Result<Vec<Edge>> {
    let directory = match build_directory(invocation) {
        Some(directory) => join(&invocation.directory, &directory),
        None => invocation.directory.clone(),
    };
    log::edges(open(&join(&directory, b".ninja_log"))?, &invocation.commands)
}

/// Returns the value of `builddir` in a build file: the directory where ninja puts its log. The
/// value is usually in the first lines of the file.
fn build_directory(invocation: &Invocation) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = open(&join(&invocation.directory, &invocation.file)).ok()?;
    file.take(MAX_BUILD_FILE_BYTES).read_to_end(&mut text).ok()?;
    let mut values = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let value = line.strip_prefix(b"builddir")?.trim_ascii_start().strip_prefix(b"=")?;
        Some(value.trim_ascii().to_vec())
    });
    // Of several values, the last one counts. A value that contains a variable is unknown.
    values.next_back().filter(|value| !value.is_empty() && !value.contains(&b'$'))
}

fn open(path: &[u8]) -> io::Result<File> {
    open_regular(Path::new(OsStr::from_bytes(path)), Links::Refused)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::BuildCommand;
    use super::super::log::hashes;
    use super::*;
    use spawnscope_data::event::LaunchId;

    fn invocation(directory: &Path) -> Invocation {
        let command = BuildCommand { launch: LaunchId(7), hashes: hashes(b"true") };
        Invocation {
            directory: directory.as_os_str().as_bytes().to_vec(),
            file: b"build.ninja".to_vec(),
            commands: vec![command],
        }
    }

    fn log() -> String {
        let hash = hashes(b"true")[0];
        format!("# ninja log v5\n0\t5\t1\tout\t{hash:x}\n")
    }

    fn found(directory: &Path) -> usize {
        Logs::default().edges(vec![invocation(directory)]).len()
    }

    #[test]
    fn the_log_is_in_the_working_directory_or_in_builddir() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(found(path), 0, "there is none");
        fs::write(path.join(".ninja_log"), log()).unwrap();
        assert_eq!(found(path), 1);
        fs::create_dir(path.join("out")).unwrap();
        fs::write(path.join("build.ninja"), "x = 1\n  builddir = no\nbuilddir = out \n").unwrap();
        assert_eq!(found(path), 0, "there is none in that directory");
        fs::rename(path.join(".ninja_log"), path.join("out/.ninja_log")).unwrap();
        assert_eq!(found(path), 1);
        fs::write(path.join("build.ninja"), "builddir = $x/out\n").unwrap();
        assert_eq!(found(path), 0, "a variable is not known");
    }

    #[test]
    fn only_regular_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(".ninja_log");
        fs::write(directory.path().join("log"), log()).unwrap();
        symlink("log", &path).unwrap();
        assert_eq!(found(directory.path()), 0);
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(found(directory.path()), 0);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(found(directory.path()), 0);
        fs::remove_dir(&path).unwrap();
        fs::hard_link(directory.path().join("log"), &path).unwrap();
        assert_eq!(found(directory.path()), 1);
    }

    #[test]
    fn the_total_timeout_ends_the_wait() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(".ninja_log"), log()).unwrap();
        let mut logs = Logs::default();
        assert_eq!(logs.edges(vec![invocation(directory.path()), invocation(directory.path())]).len(), 2);
        assert!(logs.timeout < TOTAL_TIMEOUT, "the time spent is subtracted");
        logs.timeout = Duration::ZERO;
        assert!(logs.edges(vec![invocation(directory.path())]).is_empty());
    }
}
