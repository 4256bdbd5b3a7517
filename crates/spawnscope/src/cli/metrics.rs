//! `record --metrics FILE`: a thread computes metrics from the rows of the recording, and replaces
//! the file every few seconds and at the end. node_exporter's textfile collector may read it at any
//! moment, so it is replaced as a whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::args::RecordArguments;
use super::output::{escape_line, print_message};
use super::output_file::OutputFile;
use crate::analyze::live::{LaunchMetrics, LiveLaunches};
use crate::event::Loss;
use crate::present::prometheus::{self, RecorderState, Snapshot, command_label};
use crate::record::{Follower, Header, RowReceiver, follow};

const SUFFIX: &str = "prom";
/// The mode of a new file. node_exporter runs as another user, who must be able to read it. It
/// contains names of programs and numbers, but no arguments.
const READABLE: u32 = 0o644;
/// How often the file is replaced. Prometheus usually reads every 15 to 60 seconds.
const INTERVAL: Duration = Duration::from_secs(5);

/// Checks the file of `--metrics`, if there is one. This happens before the command starts.
pub fn claim(arguments: &RecordArguments) -> Result<Option<OutputFile>> {
    let Some(path) = arguments.metrics.as_deref() else { return Ok(None) };
    if path == arguments.output {
        bail!("--metrics and -o name the same file, {}", path.display());
    }
    if is_ignored(path) && !arguments.quiet {
        print_message(&format!("node_exporter reads only files whose names end in .prom, not {}", path.display()));
    }
    claim_file(path).map(Some)
}

fn claim_file(path: &Path) -> Result<OutputFile> {
    let file = OutputFile::claim_with_mode(path, READABLE)?;
    if file.is_stream() {
        bail!("--metrics {} must be a regular file, because it is replaced: name another file", path.display());
    }
    Ok(file)
}

/// Whether node_exporter ignores a file of this name.
fn is_ignored(path: &Path) -> bool {
    path.extension().is_none_or(|suffix| suffix != SUFFIX)
}

pub struct Publisher {
    thread: JoinHandle<Result<()>>,
    lost: Arc<Mutex<Vec<Loss>>>,
}

impl Publisher {
    /// Starts the thread. The recorder must pass its rows to the returned `Follower`.
    pub fn start(file: OutputFile, max_commands: u16, header: &Header) -> Result<(Publisher, Follower)> {
        let (follower, receiver) = follow();
        let lost = Arc::<Mutex<Vec<Loss>>>::default();
        let state = RecorderState {
            collector: header.collector.clone(),
            scope: header.scope,
            is_recording: true,
            ..RecorderState::default()
        };
        let publishing = PublishingThread {
            live: LiveLaunches::new(header.missing.clone()),
            metrics: LaunchMetrics::new(max_commands.into()),
            state,
            lost: Arc::clone(&lost),
            receiver,
            file,
        };
        let thread = thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || publishing.run()).context("failed to start a thread for metrics")?;
        Ok((Publisher { thread, lost }, follower))
    }

    /// Sets the numbers of events lost so far.
    pub fn set_lost(&self, lost: &[Loss]) {
        // A collector may report one kind in several parts, and a metric series must occur only
        // once.
        let mut by_kind = BTreeMap::<&str, u64>::new();
        for loss in lost {
            *by_kind.entry(&loss.kind).or_default() += loss.events;
        }
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) =
            by_kind.into_iter().map(|(kind, events)| Loss { kind: kind.to_owned(), events }).collect();
    }

    /// Waits until the metrics of the whole recording are published. The thread ends when the
    /// recorder is finished, so finish that first.
    pub fn finish(self) -> Result<()> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct PublishingThread {
    live: LiveLaunches,
    metrics: LaunchMetrics,
    state: RecorderState,
    lost: Arc<Mutex<Vec<Loss>>>,
    receiver: RowReceiver,
    file: OutputFile,
}

impl PublishingThread {
    /// Follows the recording to its end. If the file cannot be written, this is tried again at the
    /// next interval; only a failure at the end is returned.
    fn run(mut self) -> Result<()> {
        let mut has_failed = false;
        // The first metrics are published early, so that an operator soon sees that this works.
        let mut due = Instant::now() + Duration::from_secs(1);
        loop {
            match self.receiver.next(due.saturating_duration_since(Instant::now())) {
                Ok(rows) => {
                    for launch in self.live.apply(rows) {
                        self.metrics.add(command_label(&launch), &launch);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.state.is_recording = false;
                    return self.publish();
                }
            }
            if Instant::now() < due {
                continue;
            }
            due = Instant::now() + INTERVAL;
            if let Err(error) = self.publish()
                && !std::mem::replace(&mut has_failed, true)
            {
                print_message(&format!("{}; trying again", escape_line(format!("{error:#}"))));
            }
        }
    }

    fn publish(&mut self) -> Result<()> {
        self.state.lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.state.skipped = self.receiver.skipped();
        let snapshot = Snapshot {
            launches: &self.metrics,
            started: self.live.started(),
            running: self.live.running() as u64,
            recorder: &self.state,
        };
        self.file.replace(|out| prometheus::write(out, &snapshot))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn another_user_can_read_a_new_file_but_not_one_that_its_owner_has_made_private() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["spawnscope.prom", "other"].map(|name| directory.path().join(name));
        let replace = || claim_file(&path).unwrap().replace(|out| out.write_all(b"x")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        replace();
        fs::write(&other, "").unwrap();
        assert_eq!(mode(&path), mode(&other) & READABLE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        replace();
        assert_eq!(mode(&path), 0o600);
    }

    #[test]
    fn files_that_must_not_be_replaced_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link.prom");
        symlink("elsewhere", &link).unwrap();
        for path in [link.as_path(), directory.path(), &directory.path().join("missing/x.prom"), Path::new("/dev/null")]
        {
            assert!(claim_file(path).is_err(), "{}", path.display());
        }
        assert!(is_ignored(Path::new("spawnscope.txt")) && !is_ignored(Path::new("spawnscope.prom")));
    }
}
