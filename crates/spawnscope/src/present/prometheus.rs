//! Metrics in Prometheus' text format. Any user of the machine can choose the name of a command, and one invalid line makes node_exporter reject the whole file,
//! so they are escaped twice: for people (`text::escape`) and for the format.

use std::io::{self, Write};

use super::text;
use crate::analyze::Scope;
use crate::analyze::live::{CommandMetrics, EndedLaunch, LaunchMetrics};
use crate::event::{Loss, Nanos};

/// The prefix of all metric names.
const PREFIX: &str = "spawnscope";

/// The metrics of one recording.
#[derive(Debug)]
pub struct Snapshot<'a> {
    /// The figures by command.
    pub launches: &'a LaunchMetrics,
    /// Launches that began.
    pub started: u64,
    /// Launches that have not ended.
    pub running: u64,
    /// The recorder.
    pub recorder: &'a RecorderState,
}

/// The state of the recorder.
#[derive(Clone, Debug)]
pub struct RecorderState {
    /// The name of the collector.
    pub collector: String,
    /// What is followed.
    pub scope: Scope,
    /// Wall-clock time at the start, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// Whether the recording goes on.
    pub is_recording: bool,
    /// Lost events by kind. A kind occurs once.
    pub lost: Vec<Loss>,
    /// Launches that ended while these metrics could not be computed fast enough.
    pub skipped: u64,
}

/// Returns one of the counts of a command.
type Counter = fn(&CommandMetrics) -> u64;

/// Returns the value of the label `command` of a launch.
#[must_use]
pub fn command_label(launch: &EndedLaunch) -> String {
    text::escape(&launch.command)
}

/// Writes all metrics.
///
/// # Errors
/// When `out` cannot be written.
pub fn write(out: &mut dyn Write, snapshot: &Snapshot<'_>) -> io::Result<()> {
    write_recorder(out, snapshot.recorder)?;
    let mut total = |name: &str, kind: &str, help: &str, value: u64| {
        let name = describe(out, name, kind, help)?;
        writeln!(out, "{name} {value}")
    };
    let begun = "Launches that began, all commands.";
    total("launches_started_total", "counter", begun, snapshot.started)?;
    let running = "Launches that have not ended.";
    total("launches_running", "gauge", running, snapshot.running)?;
    let counters: [(&str, &str, Counter); 3] = [
        (
            "launches_total",
            "Launches that ended and were reaped, by command: (sh) is a fork of sh that executed no program.",
            |row| row.launches,
        ),
        (
            "launch_failures_total",
            "Launches that exited with a status other than 0 or were killed by a signal.",
            |row| row.failures,
        ),
        (
            "forks_without_exec_total",
            "Launches that ended without executing a program.",
            |row| row.forks_without_exec,
        ),
    ];
    for (name, help, value) in counters {
        let name = describe(out, name, "counter", help)?;
        for (command, row) in snapshot.launches.commands() {
            writeln!(out, "{name}{{command=\"{}\"}} {}", label_value(command), value(row))?;
        }
    }
    write_phases(out, snapshot.launches)
}

fn write_recorder(out: &mut dyn Write, recorder: &RecorderState) -> io::Result<()> {
    let name = describe(out, "recorder_info", "gauge", "The recorder; the value is always 1.")?;
    writeln!(
        out,
        "{name}{{version=\"{}\",collector=\"{}\",scope=\"{}\"}} 1",
        env!("CARGO_PKG_VERSION"),
        label_value(&recorder.collector),
        recorder.scope.name()
    )?;
    let name = describe(
        out,
        "recorder_running",
        "gauge",
        "1 while the recording goes on, 0 once it has ended.",
    )?;
    writeln!(out, "{name} {}", u8::from(recorder.is_recording))?;
    let name = describe(
        out,
        "recorder_start_time_seconds",
        "gauge",
        "When the recording began, in seconds since 1970-01-01 UTC.",
    )?;
    writeln!(out, "{name} {}", recorder.started_unix_ns / 1_000_000_000)?;
    let name = describe(
        out,
        "lost_events_total",
        "counter",
        "Events that did not reach the recording, by kind. Without a line, none was lost.",
    )?;
    for loss in &recorder.lost {
        writeln!(out, "{name}{{kind=\"{}\"}} {}", label_value(&loss.kind), loss.events)?;
    }
    let name = describe(
        out,
        "skipped_launches_total",
        "counter",
        "Launches that are in the recording, but not in these metrics, because they were too many at once.",
    )?;
    writeln!(out, "{name} {}", recorder.skipped)
}

fn write_phases(out: &mut dyn Write, launches: &LaunchMetrics) -> io::Result<()> {
    let name = describe(
        out,
        "phase_seconds",
        "histogram",
        "Wall time of launches by phase: create, queue, setup, exec, load, run, teardown, reap.",
    )?;
    for (command, row) in launches.commands() {
        let command = label_value(command);
        for (phase, histogram) in row.phases() {
            let labels = format!("command=\"{command}\",phase=\"{}\"", phase.name());
            for (end, count) in histogram.cumulative() {
                writeln!(out, "{name}_bucket{{{labels},le=\"{}\"}} {count}", seconds(end))?;
            }
            let count = histogram.count();
            writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}")?;
            writeln!(out, "{name}_sum{{{labels}}} {}", seconds(histogram.sum))?;
            writeln!(out, "{name}_count{{{labels}}} {count}")?;
        }
    }
    Ok(())
}

/// Writes the head of a metric. Returns its name.
fn describe(out: &mut dyn Write, name: &str, kind: &str, help: &str) -> io::Result<String> {
    let name = format!("{PREFIX}_{name}");
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
    Ok(name)
}

/// Returns the time in seconds with all its digits, which a float would round.
fn seconds(time: Nanos) -> String {
    let digits = format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Escapes a label's value as the format demands. Line ends never come this far; they are escaped for safety.
fn label_value(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_stays_inside_its_quotes() {
        let hostile = b"a\"} 1\nevil{x=\"\\\x1b[2J\xff\r";
        let value = label_value(&text::escape(hostile));
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
