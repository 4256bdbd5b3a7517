//! The arguments of `export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::DEFAULT_FILE;

pub const EXAMPLES: &str = "\
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
