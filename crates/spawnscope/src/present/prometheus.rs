//! The metrics of a recording in progress, in Prometheus' text format. Any user of the machine can
//! choose the name of a command, and one invalid line makes node_exporter reject the whole file, so
//! names are escaped twice: for people (`text::escape`) and for the format.

use std::io::{self, Write};

use super::text;
use crate::analyze::Scope;
use crate::analyze::live::{CommandMetrics, EndedLaunch, Histogram, LaunchMetrics};
use crate::event::{Loss, Nanos};

const PREFIX: &str = "spawnscope";

/// The metrics at one moment.
#[derive(Debug)]
pub struct Snapshot<'a> {
    pub launches: &'a LaunchMetrics,
    pub started: u64,
    pub running: u64,
    pub recorder: &'a RecorderState,
}

#[derive(Clone, Debug, Default)]
pub struct RecorderState {
    pub collector: String,
    pub scope: Scope,
    pub is_recording: bool,
    /// Lost events by kind. A kind occurs once.
    pub lost: Vec<Loss>,
    /// Number of launches that are missing in these metrics, because they could not be computed
    /// fast enough.
    pub skipped: u64,
}

pub fn command_label(launch: &EndedLaunch) -> String {
    text::escape(&launch.command)
}

pub fn write(out: &mut dyn Write, snapshot: &Snapshot<'_>) -> io::Result<()> {
    let mut metrics = Metrics(out);
    let Snapshot { launches, started, running, recorder } = snapshot;
    let (version, collector) = (env!("CARGO_PKG_VERSION"), recorder.collector.as_str());
    let info = [("version", version), ("collector", collector), ("scope", recorder.scope.name())];
    metrics.counts("recorder_info", "gauge", "The recorder; the value is always 1.", [(labels(&info), 1)])?;
    let help = "1 while recording, 0 once the recording has ended.";
    metrics.count("recorder_running", "gauge", help, recorder.is_recording.into())?;
    let lost = recorder.lost.iter().map(|loss| (labels(&[("kind", loss.kind.as_str())]), loss.events));
    metrics.counts("lost_events_total", "counter", "Events that did not reach the recording, by kind.", lost)?;
    let help = "Launches that are in the recording, but not in these metrics, because there were too many at once.";
    metrics.count("skipped_launches_total", "counter", help, recorder.skipped)?;
    metrics.count("launches_started_total", "counter", "Launches that began, all commands.", *started)?;
    metrics.count("launches_running", "gauge", "Launches that have not ended.", *running)?;
    let help = "Launches that ended and were reaped, by command: (sh) is a fork of sh that executed no program.";
    metrics.counts("launches_total", "counter", help, by_command(launches, |row| row.launches))?;
    let help = "Launches that exited with a status other than 0 or were killed by a signal.";
    metrics.counts("launch_failures_total", "counter", help, by_command(launches, |row| row.failures))?;
    metrics.phases(launches)
}

fn by_command(launches: &LaunchMetrics, count: fn(&CommandMetrics) -> u64) -> impl Iterator<Item = (String, u64)> {
    launches.commands().map(move |(command, row)| (labels(&[("command", command)]), count(row)))
}

struct Metrics<'o>(&'o mut dyn Write);

impl Metrics<'_> {
    fn heading(&mut self, name: &str, kind: &str, help: &str) -> io::Result<()> {
        writeln!(self.0, "# HELP {PREFIX}_{name} {help}\n# TYPE {PREFIX}_{name} {kind}")
    }

    fn count(&mut self, name: &str, kind: &str, help: &str, count: u64) -> io::Result<()> {
        self.heading(name, kind, help)?;
        writeln!(self.0, "{PREFIX}_{name} {count}")
    }

    /// Writes a metric with labels; without any series, only its heading.
    fn counts(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        series: impl IntoIterator<Item = (String, u64)>,
    ) -> io::Result<()> {
        self.heading(name, kind, help)?;
        series.into_iter().try_for_each(|(labels, count)| writeln!(self.0, "{PREFIX}_{name}{{{labels}}} {count}"))
    }

    fn phases(&mut self, launches: &LaunchMetrics) -> io::Result<()> {
        let help = "Wall time of launches by phase: create, queue, setup, exec, load, run, teardown, reap.";
        self.heading("phase_seconds", "histogram", help)?;
        for (command, row) in launches.commands() {
            for (phase, histogram) in row.phases() {
                self.histogram(&labels(&[("command", command), ("phase", phase.name())]), histogram)?;
            }
        }
        Ok(())
    }

    fn histogram(&mut self, labels: &str, histogram: &Histogram) -> io::Result<()> {
        let name = format!("{PREFIX}_phase_seconds");
        for (end, count) in histogram.cumulative() {
            writeln!(self.0, "{name}_bucket{{{labels},le=\"{}\"}} {count}", seconds(end))?;
        }
        let count = histogram.count();
        writeln!(self.0, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
        writeln!(self.0, "{name}_sum{{{labels}}} {}", seconds(histogram.sum))?;
        writeln!(self.0, "{name}_count{{{labels}}} {count}")
    }
}

fn labels(labels: &[(&str, &str)]) -> String {
    let labels = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape_label_value(value)));
    labels.collect::<Vec<_>>().join(",")
}

/// Returns the time in seconds with all its digits, which a float would round.
fn seconds(time: Nanos) -> String {
    let digits = format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Escapes a label's value as the format requires. `text::escape` has already replaced newlines;
/// escaping them is a precaution.
fn escape_label_value(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_inside_its_quotes() {
        let hostile = b"a\"} 1\nevil{x=\"\\\x1b[2J\xff\r";
        let value = escape_label_value(&text::escape(hostile));
        assert!(!value.contains(['\n', '\r', '\x1b']), "{value}");
        let unescaped = value.replace("\\\\", "").replace("\\\"", "");
        assert!(!unescaped.contains(['"', '\\']), "{value}");
    }

    #[test]
    fn seconds_keep_all_digits() {
        for (time, text) in [
            (0, "0"),
            (100_000, "0.0001"),
            (1_000_000_000, "1"),
            (10_000_000_000, "10"),
            (1_234_567_891, "1.234567891"),
        ] {
            assert_eq!(seconds(Nanos(time)), text);
        }
    }
}
