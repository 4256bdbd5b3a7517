//! Parts of the command line that several verbs share: arguments, and parsers of values. The
//! arguments of most verbs are in the file of the verb.

pub mod bench;
pub mod doctor;
pub mod export;
mod json;
pub mod record;
mod window;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueHint};

pub use self::bench::BenchArguments;
pub use self::doctor::DoctorArguments;
pub use self::export::{ExportArguments, ExportFormat};
pub use self::json::JsonArguments;
pub use self::record::{CollectorChoice, RecordArguments};
pub use self::window::WindowArguments;

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
