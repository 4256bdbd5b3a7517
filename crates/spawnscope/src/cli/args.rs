//! Parts of the command line that several verbs share: arguments, parsers of values, and how JSON
//! is printed. The arguments of most verbs are in the file of the verb.

pub mod export;
pub mod record;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueHint};
use serde_json::Value;

pub use self::export::{ExportArguments, ExportFormat};
pub use self::record::{CollectorChoice, RecordArguments};
use super::output;
use crate::analyze::model::window::Part;
use crate::event::{Nanos, Pid};
use crate::present::bounded::bounded;
use crate::present::json_values;

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
