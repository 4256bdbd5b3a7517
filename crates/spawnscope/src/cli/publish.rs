//! The metrics of a recording in progress. A thread computes them from the rows of the recording. Every few seconds, and at the end, it
//! replaces the file of `--metrics` and passes requests to the sender of `--otlp`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::args::RecordArguments;
use super::metrics::{self, MetricsFile};
use super::otlp::{Endpoint, Sender};
use super::output::{escape_line, print_message};
use super::variable;
use crate::analyze::Scope;
use crate::analyze::live::{LaunchMetrics, LiveLaunches};
use crate::analyze::model::launch::base_name;
use crate::event::Loss;
use crate::present::live_metrics::{RecorderState, Snapshot, command_label};
use crate::present::otlp::TraceContext;
use crate::present::otlp::live::{self, LongestSpans, Source};
use crate::present::text;
use crate::record::{Follower, Header, RowReceiver, follow};

/// How often metrics are written and sent. Prometheus usually reads every 15 to 60 seconds.
const INTERVAL: Duration = Duration::from_secs(5);

/// The destinations of metrics. They are checked before the command starts.
pub struct Destinations {
    file: Option<MetricsFile>,
    endpoint: Option<Endpoint>,
    max_commands: usize,
    max_spans: usize,
}

/// The thread that publishes metrics.
pub struct Publisher {
    thread: JoinHandle<Result<()>>,
    lost: Arc<Mutex<Vec<Loss>>>,
}

impl Destinations {
    /// Checks the destinations in the arguments. Returns `None` if there are none.
    ///
    /// # Errors
    /// When the file cannot be replaced, or the endpoint is not valid.
    pub fn from_arguments(arguments: &RecordArguments) -> Result<Option<Destinations>> {
        let path = arguments.metrics.as_deref();
        let file = path.map(|path| check_file(arguments, path)).transpose()?;
        let endpoint = arguments.otlp.as_ref();
        let endpoint = endpoint.map(|address| Endpoint::from_option(address.as_deref())).transpose()?;
        Ok((file.is_some() || endpoint.is_some()).then(|| Destinations {
            file,
            endpoint,
            max_commands: arguments.metrics_commands.into(),
            max_spans: arguments.otlp_spans.into(),
        }))
    }

    /// Starts the threads. The recorder must pass its rows to the returned `Follower`.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(self, header: &Header) -> Result<(Publisher, Follower)> {
        let (follower, receiver) = follow(header.started_unix_ns);
        let lost = Arc::<Mutex<Vec<Loss>>>::default();
        let sender = self.endpoint.map(Sender::start).transpose()?;
        let state = RecorderState {
            collector: header.collector.clone(),
            scope: header.scope,
            started_unix_ns: header.started_unix_ns,
            is_recording: true,
            ..RecorderState::default()
        };
        let publishing = PublishingThread {
            live: LiveLaunches::new(header.missing.clone()),
            metrics: LaunchMetrics::new(self.max_commands),
            state,
            lost: Arc::clone(&lost),
            receiver,
            file: self.file,
            remote: sender.map(|sender| Remote {
                sender,
                source: source(header),
                spans: (self.max_spans > 0).then(|| LongestSpans::new(self.max_spans)),
            }),
        };
        let thread = thread::Builder::new().name("metrics".into());
        let thread = thread.spawn(move || publishing.run()).context("failed to start a thread for metrics")?;
        Ok((Publisher { thread, lost }, follower))
    }
}

/// Checks the file of `--metrics`.
fn check_file(arguments: &RecordArguments, path: &Path) -> Result<MetricsFile> {
    if path == arguments.output {
        bail!("--metrics and -o name the same file, {}", path.display());
    }
    let file = MetricsFile::check(path)?;
    if metrics::is_ignored(path) && !arguments.quiet {
        print_message(&format!("node_exporter reads only files whose names end in .prom, not {}", path.display()));
    }
    Ok(file)
}

/// Returns the service, host and trace of the data that is sent. For a command, the trace is the same as in `export --format otlp`.
fn source(header: &Header) -> Source {
    let is_command = header.scope == Scope::Command;
    let inherited = variable("TRACEPARENT").filter(|_| is_command);
    let inherited = inherited.and_then(|text| TraceContext::parse(&text));
    let command = header.command.first().filter(|_| is_command);
    let command = command.map(|file| text::escape(base_name(file)));
    Source {
        service: variable("OTEL_SERVICE_NAME").or(command).unwrap_or_else(|| "spawnscope".to_owned()),
        host: header.hostname.clone(),
        context: inherited.unwrap_or_else(|| TraceContext::for_recording(header.started_unix_ns, &header.command)),
        is_command,
    }
}

impl Publisher {
    /// Sets the numbers of events lost so far.
    pub fn set_lost(&self, lost: &[Loss]) {
        // A collector may report one kind in several parts, and a metric series must occur only once.
        let mut by_kind = BTreeMap::<&str, u64>::new();
        for loss in lost {
            *by_kind.entry(&loss.kind).or_default() += loss.events;
        }
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner) =
            by_kind.into_iter().map(|(kind, events)| Loss { kind: kind.to_owned(), events }).collect();
    }

    /// Waits until the metrics of the whole recording are published. Waits for the network only a few seconds. The thread ends when the
    /// recorder is finished, so finish that first.
    ///
    /// # Errors
    /// When the file could not be written at the end.
    pub fn finish(self) -> Result<()> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// What the thread needs to send data to the endpoint.
struct Remote {
    sender: Sender,
    source: Source,
    /// `None` if no spans are wanted.
    spans: Option<LongestSpans>,
}

/// The data of the thread.
struct PublishingThread {
    live: LiveLaunches,
    metrics: LaunchMetrics,
    state: RecorderState,
    lost: Arc<Mutex<Vec<Loss>>>,
    receiver: RowReceiver,
    file: Option<MetricsFile>,
    remote: Option<Remote>,
}

impl PublishingThread {
    /// Follows the recording to its end. If the file cannot be written, this is tried again at the next interval; only a failure at the end is
    /// returned.
    fn run(mut self) -> Result<()> {
        let mut has_failed = false;
        // The first metrics are published early, so that an operator soon sees that this works.
        let mut due = Instant::now() + Duration::from_secs(1);
        loop {
            match self.receiver.next(due.saturating_duration_since(Instant::now())) {
                Ok(rows) => {
                    let started_unix_ns = rows.started_unix_ns;
                    for launch in self.live.apply(rows) {
                        if let Some(remote) = &mut self.remote
                            && let Some(spans) = &mut remote.spans
                        {
                            spans.add(&remote.source, &launch, started_unix_ns);
                        }
                        self.metrics.add(command_label(&launch), &launch);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.end(),
            }
            if Instant::now() < due {
                continue;
            }
            due = Instant::now() + INTERVAL;
            let written = self.publish();
            if let Err(error) = written
                && !has_failed
            {
                has_failed = true;
                print_message(&format!("{}; trying again", escape_line(format!("{error:#}"))));
            }
        }
    }

    fn end(mut self) -> Result<()> {
        self.state.is_recording = false;
        let written = self.publish();
        if let Some(remote) = self.remote {
            remote.sender.finish();
        }
        written
    }

    fn publish(&mut self) -> Result<()> {
        self.state.lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.state.skipped = self.receiver.skipped();
        if let Some(remote) = &mut self.remote {
            let spans = remote.spans.as_mut().and_then(|spans| spans.finish_interval(&remote.source));
            spans.into_iter().for_each(|body| remote.sender.queue_spans(body));
        }
        let snapshot = Snapshot {
            launches: &self.metrics,
            started: self.live.started(),
            running: self.live.running() as u64,
            recorder: &self.state,
        };
        if let Some(remote) = &self.remote {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
            remote.sender.queue_metrics(live::metrics(&remote.source, &snapshot, now));
        }
        self.file.as_ref().map_or(Ok(()), |file| file.replace(&snapshot))
    }
}
