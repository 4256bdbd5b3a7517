//! The arguments of `bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};

use super::parse_seconds;
use crate::lab::experiments::ALL;

pub const EXAMPLES: &str = "\
Examples:
  spawnscope bench --quick                     # rough results in 30 s
  spawnscope bench mechanisms parent-size      # run two experiments
  spawnscope bench --full                      # with all tables
  spawnscope bench --json >lab.json
  spawnscope bench -o lab.html                 # one page, tables and plots

No privilege is needed. The first Ctrl-C ends the measurement and reports the
results so far, with exit status 130. So do SIGTERM (143) and SIGHUP (129).";

#[derive(Debug, Args)]
pub struct BenchArguments {
    /// The experiments, by name [default: all]
    #[arg(
        value_name = "EXPERIMENT",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(ALL.iter().map(|experiment| experiment.name))
    )]
    pub experiments: Vec<String>,
    /// List the experiments; with --json, as JSON
    #[arg(long)]
    pub list: bool,
    /// Print the table of each experiment, too
    #[arg(long, conflicts_with = "json")]
    pub full: bool,
    /// Use smaller sizes and accept wider intervals: half a minute in all, not three minutes
    #[arg(long)]
    pub quick: bool,
    /// Seconds per experiment [default: 15; 1.5 with --quick]
    #[arg(long, value_name = "S", value_hint = ValueHint::Other, value_parser = parse_seconds, allow_negative_numbers = true)]
    pub seconds: Option<Duration>,
    /// Memory of the largest parent, in bytes, or with suffix k, M or G
    #[arg(long, value_name = "SIZE", value_hint = ValueHint::Other, default_value = "4G", value_parser = parse_size, allow_negative_numbers = true)]
    pub max: u64,
    /// Print JSON (schema_version 2)
    #[arg(long)]
    pub json: bool,
    /// Also write an HTML page with tables and plots; with -, print it instead of the tables
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: Option<u64> = number.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "not a number of bytes, such as 500M or 4G".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_may_have_a_unit() {
        assert_eq!(["12", "3k", "250M", "4G"].map(parse_size), [12, 3_000, 250_000_000, 4_000_000_000].map(Ok));
        for text in ["", "G", "1.5G", "-1", "4GB", "99999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
