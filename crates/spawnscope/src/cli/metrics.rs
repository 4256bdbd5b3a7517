//! `record --metrics FILE`: a thread that computes metrics from the rows of the recording, and replaces the file every few seconds and at the
//! end. node_exporter's textfile collector may read the file at any moment, so a new one is written beside it and renamed.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::output::{line, print_message};
use crate::analyze::live::{LaunchMetrics, LiveLaunches};
use crate::event::Loss;
use crate::owner::{Owner, act_as};
use crate::present::prometheus::{self, RecorderState, Snapshot};
use crate::record::{Follower, Following, Header, follow, is_recording};

/// How often the file is written. Prometheus usually reads every 15 to 60 seconds.
const INTERVAL: Duration = Duration::from_secs(5);
/// The suffix of the files that node_exporter reads.
const SUFFIX: &str = "prom";

/// Where metrics go, checked before the command starts.
pub struct MetricsFile {
    path: PathBuf,
    owner: Option<Owner>,
    max_commands: usize,
}

/// The running thread.
pub struct MetricsWriter {
    thread: JoinHandle<Result<()>>,
    lost: Arc<Mutex<Vec<Loss>>>,
}

impl MetricsFile {
    /// Checks that the file can be replaced, by writing an empty one beside it.
    ///
    /// # Errors
    /// When its folder cannot be written to, and when something else is at the path.
    pub fn check(path: &Path, owner: Option<&Owner>, max_commands: usize) -> Result<MetricsFile> {
        let file = MetricsFile {
            path: path.to_owned(),
            owner: owner.cloned(),
            max_commands,
        };
        let _acting = file.act()?;
        if is_recording(path) {
            bail!(
                "--metrics {} would replace a recording: name another file",
                path.display()
            );
        }
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            bail!(
                "--metrics {} is not a regular file, and it is replaced by renaming: name another file",
                path.display()
            );
        }
        file.beside()?;
        Ok(file)
    }

    /// Whether node_exporter would ignore a file of this name.
    pub fn is_ignored(&self) -> bool {
        self.path.extension().is_none_or(|suffix| suffix != SUFFIX)
    }

    /// Starts the thread, and returns what the recorder passes rows to.
    ///
    /// # Errors
    /// When there can be no more threads.
    pub fn start(self, header: &Header) -> Result<(MetricsWriter, Follower)> {
        let (follower, following) = follow();
        let lost = Arc::<Mutex<Vec<Loss>>>::default();
        let state = RecorderState {
            collector: header.collector.clone(),
            scope: header.scope,
            started_unix_ns: header.started_unix_ns,
            is_recording: true,
            lost: Vec::new(),
            skipped: 0,
        };
        let writing = Writing {
            live: LiveLaunches::new(header.missing.clone()),
            metrics: LaunchMetrics::new(self.max_commands),
            state,
            lost: Arc::clone(&lost),
            following,
            file: self,
        };
        let thread = thread::Builder::new().name("metrics".into());
        let thread = thread
            .spawn(move || writing.run())
            .context("failed to start a thread for --metrics")?;
        Ok((MetricsWriter { thread, lost }, follower))
    }

    fn act(&self) -> Result<Option<crate::owner::OwnerGuard>> {
        act_as(self.owner.as_ref()).with_context(|| {
            format!(
                "failed to switch to the ids of the user who called sudo, for {}",
                self.path.display()
            )
        })
    }

    /// Creates a file in the same folder, which is removed when dropped. Its name does not end in `.prom`.
    fn beside(&self) -> Result<tempfile::NamedTempFile> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let created = tempfile::Builder::new()
            .prefix(".spawnscope-metrics-")
            .suffix(".tmp")
            // node_exporter runs as a user of its own.
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(folder);
        created.with_context(|| match &self.owner {
            Some(owner) => format!(
                "failed to create a file beside {} as user {}, who called sudo: name a file in a folder that this user may write",
                self.path.display(),
                owner.uid
            ),
            None => format!("failed to create a file beside {}", self.path.display()),
        })
    }

    /// Replaces the file.
    fn replace(&self, snapshot: &Snapshot<'_>) -> Result<()> {
        let _acting = self.act()?;
        let file = self.beside()?;
        let failed = || format!("failed to write metrics to {}", self.path.display());
        let mut out = BufWriter::new(file.as_file());
        prometheus::write(&mut out, snapshot)
            .and_then(|()| out.flush())
            .with_context(failed)?;
        drop(out);
        file.persist(&self.path).with_context(failed)?;
        Ok(())
    }
}

impl MetricsWriter {
    /// Sets how many events were lost so far.
    pub fn note_lost(&self, lost: &[Loss]) {
        // A collector may report one kind in several parts, and a series may occur only once.
        let mut by_kind = BTreeMap::<&str, u64>::new();
        for loss in lost {
            *by_kind.entry(&loss.kind).or_default() += loss.events;
        }
        let sum = |(kind, events): (&str, u64)| Loss {
            kind: kind.to_owned(),
            events,
        };
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) = by_kind.into_iter().map(sum).collect();
    }

    /// Waits until the file has the figures of the whole recording, which must be finished.
    ///
    /// # Errors
    /// When the last file could not be written.
    pub fn finish(self) -> Result<()> {
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The state of the thread.
struct Writing {
    live: LiveLaunches,
    metrics: LaunchMetrics,
    state: RecorderState,
    lost: Arc<Mutex<Vec<Loss>>>,
    following: Following,
    file: MetricsFile,
}

impl Writing {
    /// Follows the recording to its end. A file that cannot be written is tried again; only the last one counts.
    fn run(mut self) -> Result<()> {
        let mut has_failed = false;
        // The first file is written soon: an operator looks whether it is there.
        let mut due = Instant::now() + Duration::from_secs(1);
        loop {
            match self.following.next(due.saturating_duration_since(Instant::now())) {
                Ok(rows) => {
                    for launch in self.live.apply(rows) {
                        self.metrics.add(prometheus::command_label(&launch), &launch);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.state.is_recording = false;
                    return self.write();
                }
            }
            if Instant::now() < due {
                continue;
            }
            due = Instant::now() + INTERVAL;
            let written = self.write();
            if let Err(error) = written
                && !has_failed
            {
                has_failed = true;
                print_message(&format!("{}; trying again", line(format!("{error:#}"))));
            }
        }
    }

    fn write(&mut self) -> Result<()> {
        self.state.lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.state.skipped = self.following.skipped();
        self.file.replace(&Snapshot {
            launches: &self.metrics,
            started: self.live.started(),
            running: self.live.running() as u64,
            recorder: &self.state,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::analyze::Scope;

    fn state() -> RecorderState {
        RecorderState {
            collector: "ebpf".to_owned(),
            scope: Scope::System,
            started_unix_ns: 1_800_000_000_000_000_000,
            is_recording: true,
            lost: Vec::new(),
            skipped: 0,
        }
    }

    fn replace(file: &MetricsFile, started: u64) -> Result<()> {
        file.replace(&Snapshot {
            launches: &LaunchMetrics::new(2),
            started,
            running: 0,
            recorder: &state(),
        })
    }

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_reader_sees_the_old_file_or_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spawnscope.prom");
        let file = MetricsFile::check(&path, None, 2).unwrap();
        assert!(names(folder.path()).is_empty() && !file.is_ignored());
        replace(&file, 1).unwrap();
        let mut open = fs::File::open(&path).unwrap();
        replace(&file, 22).unwrap();
        let mut old = String::new();
        std::io::Read::read_to_string(&mut open, &mut old).unwrap();
        assert!(old.contains("spawnscope_launches_started_total 1\n"), "{old}");
        let new = fs::read_to_string(&path).unwrap();
        assert!(new.contains("spawnscope_launches_started_total 22\n"), "{new}");
        assert_eq!(names(folder.path()), ["spawnscope.prom"]);
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o600, 0o600, "{mode:o}");
    }

    #[test]
    fn what_must_not_be_replaced_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link.prom");
        symlink("elsewhere", &link).unwrap();
        for path in [link.as_path(), folder.path(), &folder.path().join("missing/x.prom")] {
            assert!(MetricsFile::check(path, None, 2).is_err(), "{}", path.display());
        }
        let file = MetricsFile::check(&folder.path().join("spawnscope.txt"), None, 2).unwrap();
        assert!(file.is_ignored());
    }

    #[test]
    fn a_file_that_cannot_be_replaced_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        let file = MetricsFile::check(&path, None, 2).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(replace(&file, 1).is_err());
        assert_eq!(names(folder.path()), ["x.prom"]);
    }
}
