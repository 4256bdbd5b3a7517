//! Opens ninja's logs. A path is that of a recorded process: its owner may have put anything there, and root may be reading it. So only regular
//! files are read, the last component is not followed if it is a link, and a file system that does not answer is not waited for.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::arguments::below;
use super::{Edge, Run, log};
use spawnscope_system::files::{Links, open_regular};

/// How long a recording waits for logs, in total. One of 20,000 edges takes some milliseconds.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it waits for one of them.
const LOG_TIMEOUT: Duration = Duration::from_secs(2);
/// How much of a build file is searched for the directory of the log.
const MAX_OF_BUILD_FILE: u64 = 256 << 10;

/// Reads logs.
#[derive(Debug)]
pub(crate) struct Logs {
    /// How long to wait for more of them.
    timeout: Duration,
}

impl Default for Logs {
    fn default() -> Logs {
        Logs { timeout: TOTAL_TIMEOUT }
    }
}

impl Logs {
    /// Returns the edges of the commands of these runs, as far as they are known.
    pub(crate) fn edges(&mut self, runs: Vec<Run>) -> Vec<Edge> {
        runs.into_iter().flat_map(|run| self.read(run)).collect()
    }

    fn read(&mut self, run: Run) -> Vec<Edge> {
        let begin = Instant::now();
        let most = self.timeout.min(LOG_TIMEOUT);
        if most.is_zero() {
            return Vec::new();
        }
        let (sender, receiver) = mpsc::channel();
        // It inherits the ids of this thread, so under sudo it reads what the user may read. If it hangs, it is left alone.
        let reader = thread::Builder::new()
            .name("ninja's log".into())
            .spawn(move || drop(sender.send(edges(&run))));
        let edges = reader.map(|_| receiver.recv_timeout(most));
        self.timeout = self.timeout.saturating_sub(begin.elapsed());
        // Without a log, or with one that cannot be read, the edges are unknown.
        edges.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or_default()
    }
}

fn edges(run: &Run) -> io::Result<Vec<Edge>> {
    let directory = match build_directory(run) {
        Some(directory) => below(&run.directory, &directory),
        None => run.directory.clone(),
    };
    log::edges(open(&below(&directory, b".ninja_log"))?, &run.commands)
}

/// Returns the value of `builddir` in a build file, which is where ninja puts its log. It usually is in the first lines.
fn build_directory(run: &Run) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = open(&below(&run.directory, &run.file)).ok()?;
    file.take(MAX_OF_BUILD_FILE).read_to_end(&mut text).ok()?;
    let value = |line: &[u8]| {
        let value = line.strip_prefix(b"builddir")?.trim_ascii_start().strip_prefix(b"=")?;
        Some(value.trim_ascii().to_vec())
    };
    // The last one counts. One with a variable is unknown.
    let last = text.split(|byte| *byte == b'\n').filter_map(value).next_back();
    last.filter(|value| !value.is_empty() && !value.contains(&b'$'))
}

fn open(path: &[u8]) -> io::Result<File> {
    open_regular(Path::new(OsStr::from_bytes(path)), Links::Refused)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::super::Command;
    use super::super::hash::{Algorithm, Hashes};
    use super::*;
    use spawnscope_data::event::LaunchId;

    fn run(directory: &Path) -> Run {
        let command = Command {
            launch: LaunchId(7),
            hashes: Hashes::of(b"true"),
        };
        Run {
            directory: directory.as_os_str().as_bytes().to_vec(),
            file: b"build.ninja".to_vec(),
            commands: vec![command],
        }
    }

    fn log() -> String {
        let hash = Hashes::of(b"true").by(Algorithm::Murmur);
        format!("# ninja log v5\n0\t5\t1\tout\t{hash:x}\n")
    }

    fn found(directory: &Path) -> usize {
        Logs::default().edges(vec![run(directory)]).len()
    }

    #[test]
    fn the_log_is_where_ninja_works_or_where_the_build_file_says() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert_eq!(found(directory.path()), 0, "there is none");
        fs::write(at(".ninja_log"), log()).unwrap();
        assert_eq!(found(directory.path()), 1);
        fs::create_dir(at("out")).unwrap();
        fs::write(at("build.ninja"), "x = 1\n  builddir = no\nbuilddir = out \n").unwrap();
        assert_eq!(found(directory.path()), 0, "there is none in that directory");
        fs::rename(at(".ninja_log"), at("out/.ninja_log")).unwrap();
        assert_eq!(found(directory.path()), 1);
        fs::write(at("build.ninja"), "builddir = $x/out\n").unwrap();
        assert_eq!(found(directory.path()), 0, "a variable is not known");
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
        assert_eq!(logs.edges(vec![run(directory.path()), run(directory.path())]).len(), 2);
        assert!(logs.timeout < TOTAL_TIMEOUT, "the time counts");
        logs.timeout = Duration::ZERO;
        assert!(logs.edges(vec![run(directory.path())]).is_empty());
    }
}
