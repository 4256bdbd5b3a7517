//! Arguments that several files use: those of `record` and `export`, parts that several verbs
//! share, parsers of values, and how JSON is printed. The arguments of most verbs are in the file
//! of the verb.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum, ValueHint};
use serde_json::Value;

use super::identity::IdentityArguments;
use super::{labels, output};
use crate::analyze::model::window::Part;
use crate::event::{Nanos, Pid};
use crate::present::bounded::bounded;
use crate::present::json_values;
use crate::record::reader::Label;

/// The recording that is written or read when the command line names no file.
pub const DEFAULT_FILE: &str = "spawnscope.db";
/// Names standard input or output.
pub const STANDARD_STREAM: &str = "-";

#[derive(Debug, Args)]
pub struct RecordingArgument {
    /// The recording to read; - reads it from standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath, action = ArgAction::Set)]
    pub file: PathBuf,
}

/// Parses a number of launches or the like.
pub(super) fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "needs a whole number from 0 on".to_owned())
}

pub(super) fn parse_pid(text: &str) -> Result<i32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "needs the number of a process, which `pgrep NAME` prints".to_owned())
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be more than 0 seconds".to_owned()),
    }
}

/// Minimum size of a ring of `--keep`, in bytes. An eighth of it, the size of one file, is more
/// than a busy machine writes between two checks of the size.
const MIN_RING_BYTES: u64 = 16_000_000;

fn parse_ring_size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32, u64); 6] =
        [("MB", 2, 1000), ("GB", 3, 1000), ("TB", 4, 1000), ("MiB", 2, 1024), ("GiB", 3, 1024), ("TiB", 4, 1024)];
    let parts = UNITS.iter().find_map(|unit| Some((text.strip_suffix(unit.0)?, unit)));
    let (number, (_, power, base)) = parts.ok_or_else(|| "needs a unit: 500MB, 1GB, 2GiB".to_owned())?;
    let number: u64 = number.parse().map_err(|_| "not a whole number with a unit".to_owned())?;
    let bytes = base.pow(*power).checked_mul(number).ok_or_else(|| "too large".to_owned())?;
    if bytes < MIN_RING_BYTES {
        return Err("must be at least 16MB".to_owned());
    }
    Ok(bytes)
}

/// Returns a parser for values with these names, which `--help` lists with what they are about.
pub(super) fn named<T: Clone + Send + Sync + 'static>(
    values: impl IntoIterator<Item = (&'static str, &'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let values: Vec<_> = values.into_iter().collect();
    let names = values.iter().map(|(name, about, _)| {
        let value = PossibleValue::new(*name);
        if about.is_empty() { value } else { value.help(*about) }
    });
    PossibleValuesParser::new(names.collect::<Vec<_>>()).try_map(move |name| {
        let named = values.iter().find(|(known, ..)| *known == name);
        named.map(|(.., value)| value.clone()).ok_or("not a known name")
    })
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct JsonArguments {
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
    /// Print at most N bytes of JSON, in one line: the ends of lists are left out, and `left_out`
    /// counts what is missing
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, requires = "json")]
    pub max_bytes: Option<usize>,
}

impl JsonArguments {
    /// Prints the JSON, or the text that `render` returns for the width of standard output. `what`
    /// names it in an error.
    pub fn print(self, what: &str, json: impl FnOnce() -> Value, render: impl FnOnce(usize) -> String) -> Result<()> {
        let text = match self.json {
            true => self.text(&json())?,
            false => output::with_glyphs(render(output::width(&io::stdout()))),
        };
        output::print(&text, what)
    }

    pub fn text(self, value: &Value) -> Result<String> {
        let Some(max_bytes) = self.max_bytes else { return Ok(json_values::text(value)) };
        bounded(value, max_bytes).map_err(|error| {
            anyhow!("--max-bytes {max_bytes} is too small: the shortest answer has {} bytes", error.least_bytes)
        })
    }
}

/// Which part of a recording to explain.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Part of the recording")]
pub struct WindowArguments {
    /// Only episode N, as numbered by `report --full`: a span in which one process launched others,
    /// such as a request of a server
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["from", "to", "process"])]
    pub episode: Option<u32>,
    /// Only what happened after the first S seconds of the recording
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_instant)]
    pub from: Option<Nanos>,
    /// Only what happened in the first S seconds of the recording
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_instant)]
    pub to: Option<Nanos>,
    /// Only the process PID and what it launches
    #[arg(long, value_name = "PID", value_hint = ValueHint::Other, value_parser = clap::value_parser!(i32).range(1..))]
    pub process: Option<i32>,
}

impl WindowArguments {
    /// Returns the part that the arguments name, or else `default`.
    pub fn part(&self, default: Part) -> Part {
        if let Some(number) = self.episode {
            return Part::Episode(number as usize);
        }
        if self.from.is_none() && self.to.is_none() && self.process.is_none() {
            return default;
        }
        Part::Span { from: self.from, to: self.to, pid: self.process.map(Pid) }
    }

    /// Returns the options as the user would type them, followed by the name of the recording.
    /// `None` if there are neither.
    pub fn with_file(&self, file: Option<String>) -> Option<String> {
        let typed = [
            self.episode.map(|number| format!("--episode {number}")),
            self.from.map(|at| format!("--from {}", at.0 as f64 / NANOS_PER_SECOND)),
            self.to.map(|at| format!("--to {}", at.0 as f64 / NANOS_PER_SECOND)),
            self.process.map(|pid| format!("--process {pid}")),
            file,
        ];
        let typed: Vec<String> = typed.into_iter().flatten().collect();
        (!typed.is_empty()).then(|| typed.join(" "))
    }
}

const NANOS_PER_SECOND: f64 = 1e9;
/// Maximum time after the start of a recording, in seconds: nanoseconds are stored as signed 64-bit
/// integers.
const MAX_SECONDS: f64 = 9e9;

fn parse_instant(text: &str) -> Result<Nanos, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if !(0.0..=MAX_SECONDS).contains(&seconds) {
        return Err("give seconds after the start of the recording, such as 12.5".to_owned());
    }
    Ok(Nanos((seconds * NANOS_PER_SECOND) as u64))
}

pub const EXPORT_EXAMPLES: &str = "\
Examples:
  spawnscope export --format ndjson | jq -c 'select(.phases.create > 1e6)'
  spawnscope export --format perfetto -o trace.pftrace
  spawnscope export --format otlp -o trace.json   # for OpenTelemetry
  spawnscope export --format parquet -o fleet/ ci.db nightly-*.db
  spawnscope export --format parquet -o s3://builds/fleet ci.db

Open Perfetto traces at https://ui.perfetto.dev. An OTLP trace belongs to the
trace of TRACEPARENT if that is set, and to the service OTEL_SERVICE_NAME.";

#[derive(Debug, Args)]
pub struct ExportArguments {
    /// The recording to read; - reads it from standard input. `--format parquet` reads several
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Where to write the export [default: -, standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Maximum number of spans of an OTLP trace; above it, similar siblings become one span
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_spans: u32,
    /// With `--format parquet`: leave out arguments of commands, lines of scripts given with -c,
    /// and fixes, which quote them
    #[cfg(feature = "parquet")]
    #[arg(long)]
    pub no_command_lines: bool,
    /// With `--format parquet`: the mode of new files, such as 640
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "MODE", value_hint = ValueHint::Other, default_value = "600", value_parser = parse_mode)]
    pub mode: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// JSON, one launch per line
    Ndjson,
    /// A Perfetto trace (protobuf): processes nested by parent, phases as slices, and the critical
    /// path
    Perfetto,
    /// An OpenTelemetry trace as OTLP/JSON: a span for each launch
    Otlp,
    /// Files in a Parquet dataset of many recordings: -o is its directory, or s3://BUCKET/PREFIX
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Parses the mode of a file, in octal digits. Its owner must be able to read it.
#[cfg(feature = "parquet")]
fn parse_mode(text: &str) -> Result<u32, String> {
    let mode =
        u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o666 && mode & 0o400 != 0 && mode & 0o111 == 0);
    mode.ok_or_else(|| "needs octal digits that let the owner read and nobody execute, such as 640".to_owned())
}

#[derive(Clone, Debug, Default, Args)]
pub struct RecordArguments {
    /// The recording to write; an existing one is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Run the command N times, one recording each: x.db becomes x.1.db to x.N.db (for `diff` and
    /// `check`)
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, requires = "command", conflicts_with_all = ["all", "pid", "json"], value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub runs: Option<u32>,
    /// Follow the process PID and the processes that it launches from now on
    #[arg(short, long, value_name = "PID", value_hint = ValueHint::Other, conflicts_with_all = ["all", "command"], allow_negative_numbers = true, value_parser = parse_pid)]
    pub pid: Option<i32>,
    /// Also follow a daemon that is already running, by its pid or its name, with its child
    /// processes and what they launch, until the command ends; can be repeated. When the command
    /// waits for the daemon, the critical path then follows what the daemon does
    #[arg(long, value_name = "PID|NAME", value_hint = ValueHint::Other, requires = "command", conflicts_with_all = ["all", "pid", "wait_for_all"])]
    pub with: Vec<String>,
    /// Follow every process on the machine until Ctrl-C, --duration, or the end of the command
    #[arg(short, long)]
    pub all: bool,
    /// Stop recording after S seconds; the command keeps running
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_seconds)]
    pub duration: Option<Duration>,
    /// Record until every process that the command launched has ended, daemons included; once the
    /// command has ended, Ctrl-C ends the recording
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid"])]
    pub wait_for_all: bool,
    /// How to collect events
    #[arg(long, value_enum, default_value_t = CollectorChoice::Auto, value_name = "WHICH")]
    pub collector: CollectorChoice,
    /// With ptrace: do not trace the system calls between a fork and its exec; faster, but `setup`,
    /// `exec` and failed execs are unknown
    #[arg(long)]
    pub no_failed_execs: bool,
    /// With ptrace: also trace the system calls of programs that may launch others; slower, but
    /// `create` and `reap` are known
    #[arg(long)]
    pub launcher_calls: bool,
    /// Also record the native call stack of each launch
    #[arg(long)]
    pub stacks: bool,
    /// Also sample, HZ times a second, what each CPU runs and what processes wait for; for `flame`
    /// with --phase, --on-cpu or --off-cpu
    #[arg(long, value_name = "HZ", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sample: Option<u32>,
    /// Size of the kernel ring buffer in KiB; raise it if events are lost [default: 16384; less if
    /// a control group limits memory]
    #[arg(long, value_name = "KIB", value_hint = ValueHint::Other, value_parser = clap::value_parser!(u32).range(4..=1024 * 1024))]
    pub buffer: Option<u32>,
    /// Store a label, for example of the run or the machine; can be repeated. Commit, branch, job,
    /// run and attempt of a CI service are stored automatically
    #[arg(long = "label", value_name = "NAME=VALUE", value_hint = ValueHint::Other, value_parser = labels::parse)]
    pub labels: Vec<Label>,
    /// Do not look up the script lines that request launches
    #[arg(long)]
    pub no_lines: bool,
    /// Also record the lines of Node.js programs that launch: sets NODE_OPTIONS for the command, so
    /// that each Node.js process below it loads a file that reports these lines
    #[arg(long, requires = "command", conflicts_with_all = ["all", "pid", "no_lines"])]
    pub node_lines: bool,
    /// Do not mask arguments that look like secrets
    #[arg(long)]
    pub no_redact: bool,
    /// Also write the report as JSON to FILE; /dev/fd/N writes to an open descriptor
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
    /// Write a ring of recordings, at most SIZE in total (100MB, 2GiB), instead of one: x.db
    /// becomes x.1.db, x.2.db, ...; the oldest are deleted
    #[arg(long, value_name = "SIZE", value_hint = ValueHint::Other, value_parser = parse_ring_size, conflicts_with_all = ["runs", "command", "json"])]
    pub keep: Option<u64>,
    /// Write a Prometheus textfile for node_exporter, and update it while recording: launches,
    /// failures and phases by command
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "runs")]
    pub metrics: Option<PathBuf>,
    /// Maximum number of commands in --metrics; launches of any further command are counted as
    /// `other`
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, default_value_t = 50, requires = "metrics", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub metrics_commands: u16,
    /// Print no report and no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Print which BPF programs the kernel refuses, with the end of the verifier's log
    #[arg(short, long)]
    pub verbose: bool,
    #[command(flatten)]
    pub identity: IdentityArguments,
    /// The command and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

pub const RECORD_EXAMPLES: &str = "\
Examples:
  spawnscope record -- git status
  spawnscope record -o build.db -- make -j8
  spawnscope record -q -o t.db -- ./test.sh
  spawnscope record -q --json t.json -- ./test.sh
  spawnscope record --runs 5 -- ./test.sh     # five recordings, for `diff`
  spawnscope record --label runner=big -- make  # shown by `report --full`
  spawnscope record --sample 999 -- make      # for `flame --phase load`
  spawnscope record --collector ptrace -- make  # without root
  spawnscope record --collector ptrace --launcher-calls -- ./test.sh
  spawnscope record --wait-for-all -- ./start  # include its daemons
  sudo spawnscope record --with dockerd -- docker build .  # and its daemon
  spawnscope record -p $(pidof -s nagios) --duration 60
  sudo spawnscope record -a --duration 10
  sudo spawnscope record -a -q --keep 1GB -o /var/tmp/launches.db
  spawnscope record -a --metrics /var/lib/node_exporter/spawnscope.prom

With root, or the capabilities CAP_BPF and CAP_PERFMON, `auto` uses eBPF.
Without them, it uses ptrace: this records less, and -p, -a and --with do not
work.

Under sudo, the command runs as the user who called sudo, and that user owns the
recording. A sudoers entry for spawnscope still amounts to full root access (see
SECURITY.md).";

/// Which collector to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CollectorChoice {
    /// The best one that works on this machine
    #[default]
    Auto,
    /// eBPF: every phase, lowest overhead; needs root or CAP_BPF and CAP_PERFMON
    Ebpf,
    /// ptrace: needs no privilege; only for a command; does not record what ends a wait, and some
    /// phases are unknown
    Ptrace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_a_whole_number_with_a_unit() {
        assert_eq!(parse_ring_size("1GB"), Ok(1_000_000_000));
        assert_eq!(parse_ring_size("50MiB"), Ok(50 << 20));
        for text in ["1", "GB", "1.5GB", "15MB", "-1GB", "99999999999TB", "1kB"] {
            assert!(parse_ring_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_is_a_positive_number_of_seconds() {
        assert_eq!(parse_seconds("1.5"), Ok(Duration::from_millis(1500)));
        for text in ["0", "-1", "nan", "1e300", "soon"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }
}
