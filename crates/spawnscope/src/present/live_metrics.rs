//! The metrics of a recording in progress: names, help texts, labels and values. `prometheus` and `otlp` write them in their formats.

use super::text;
use crate::analyze::Scope;
use crate::analyze::live::{CommandMetrics, EndedLaunch, Histogram, LaunchMetrics};
use crate::event::Loss;

/// The prefix of the names of all metrics.
const PREFIX: &str = "spawnscope";

/// The metrics at one moment.
#[derive(Debug)]
pub struct Snapshot<'a> {
    /// The metrics by command.
    pub launches: &'a LaunchMetrics,
    /// Number of launches that began.
    pub started: u64,
    /// Number of launches that have not ended.
    pub running: u64,
    /// The recorder.
    pub recorder: &'a RecorderState,
}

/// The state of the recorder.
#[derive(Clone, Debug, Default)]
pub struct RecorderState {
    /// The name of the collector.
    pub collector: String,
    /// What is followed.
    pub scope: Scope,
    /// Wall-clock time at the start, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// Whether the recording is in progress.
    pub is_recording: bool,
    /// Lost events by kind. A kind occurs once.
    pub lost: Vec<Loss>,
    /// Number of launches that are missing in these metrics, because they could not be computed fast enough.
    pub skipped: u64,
}

/// A metric with all its series.
#[derive(Debug)]
pub struct Family<'a> {
    /// Its name, after the prefix.
    name: &'static str,
    /// Its description, one or two sentences.
    pub help: &'static str,
    /// Its type.
    pub kind: MetricType,
    /// Its series. Empty if nothing was counted.
    pub series: Vec<Series<'a>>,
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// A number that only increases.
    Counter,
    /// A number that varies.
    Gauge,
    /// A distribution of durations.
    Histogram,
}

/// A value with its labels.
#[derive(Debug)]
pub struct Series<'a> {
    /// Names and values.
    pub labels: Vec<(&'static str, &'a str)>,
    /// The value.
    pub value: Value<'a>,
}

/// The value of a series.
#[derive(Debug)]
pub enum Value<'a> {
    /// The value of a counter or a gauge.
    Count(u64),
    /// The value of a histogram, in seconds.
    Times(&'a Histogram),
}

/// A function that returns one of the counts of a command.
type Counter = fn(&CommandMetrics) -> u64;

/// The metrics by command: name, description and value.
const BY_COMMAND: [(&str, &str, Counter); 2] = [
    (
        "launches_total",
        "Launches that ended and were reaped, by command: (sh) is a fork of sh that executed no program.",
        |row| row.launches,
    ),
    ("launch_failures_total", "Launches that exited with a status other than 0 or were killed by a signal.", |row| {
        row.failures
    }),
];

/// Returns the value of the label `command` of a launch.
#[must_use]
pub fn command_label(launch: &EndedLaunch) -> String {
    text::escape(&launch.command)
}

/// Returns all metrics.
#[must_use]
pub fn families<'a>(snapshot: &Snapshot<'a>) -> Vec<Family<'a>> {
    let mut families = recorder_families(snapshot.recorder);
    families.push(Family::single(
        "launches_started_total",
        "Launches that began, all commands.",
        MetricType::Counter,
        snapshot.started,
    ));
    families.push(Family::single(
        "launches_running",
        "Launches that have not ended.",
        MetricType::Gauge,
        snapshot.running,
    ));
    let by_command = BY_COMMAND.map(|(name, help, count)| Family {
        name,
        help,
        kind: MetricType::Counter,
        series: snapshot
            .launches
            .commands()
            .map(|(command, row)| Series::count(vec![("command", command)], count(row)))
            .collect(),
    });
    families.extend(by_command);
    families.push(phases(snapshot.launches));
    families
}

fn recorder_families(recorder: &RecorderState) -> Vec<Family<'_>> {
    let info = Series::count(
        vec![
            ("version", env!("CARGO_PKG_VERSION")),
            ("collector", &recorder.collector),
            ("scope", recorder.scope.name()),
        ],
        1,
    );
    let lost = recorder.lost.iter();
    vec![
        Family {
            name: "recorder_info",
            help: "The recorder; the value is always 1.",
            kind: MetricType::Gauge,
            series: vec![info],
        },
        Family::single(
            "recorder_running",
            "1 while recording, 0 once the recording has ended.",
            MetricType::Gauge,
            recorder.is_recording.into(),
        ),
        Family {
            name: "lost_events_total",
            help: "Events that did not reach the recording, by kind.",
            kind: MetricType::Counter,
            series: lost.map(|loss| Series::count(vec![("kind", loss.kind.as_str())], loss.events)).collect(),
        },
        Family::single(
            "skipped_launches_total",
            "Launches that are in the recording, but not in these metrics, because there were too many at once.",
            MetricType::Counter,
            recorder.skipped,
        ),
    ]
}

fn phases(launches: &LaunchMetrics) -> Family<'_> {
    Family {
        name: "phase_seconds",
        help: "Wall time of launches by phase: create, queue, setup, exec, load, run, teardown, reap.",
        kind: MetricType::Histogram,
        series: launches
            .commands()
            .flat_map(|(command, row)| {
                row.phases().map(move |(phase, histogram)| Series {
                    labels: vec![("command", command), ("phase", phase.name())],
                    value: Value::Times(histogram),
                })
            })
            .collect(),
    }
}

impl Family<'_> {
    /// Returns the name with its prefix.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{PREFIX}_{}", self.name)
    }

    fn single(name: &'static str, help: &'static str, kind: MetricType, value: u64) -> Self {
        Family { name, help, kind, series: vec![Series::count(Vec::new(), value)] }
    }
}

impl<'a> Series<'a> {
    fn count(labels: Vec<(&'static str, &'a str)>, count: u64) -> Series<'a> {
        Series { labels, value: Value::Count(count) }
    }
}
