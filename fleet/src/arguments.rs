//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

const EXAMPLES: &str = "\
Examples:
  spawnscope export --format parquet -o fleet/ spawnscope.db
  spawnscope fleet top fleet/
  spawnscope fleet top --by command --order count fleet/
  spawnscope fleet regressions --since 2026-11-10 fleet/
  spawnscope fleet machines --html machines.html fleet/
  spawnscope doctor -o fleet/
  spawnscope fleet push fleet/ s3://builds/fleet
  spawnscope fleet sql fleet/ \"SELECT host, wall_ns FROM runs\"";

/// Query a dataset of many recordings
///
/// A dataset is a directory of Parquet files that `spawnscope export --format parquet -o DATASET` adds recordings to. Questions cover
/// all runs in it. A dataset in S3-compatible storage is named s3://BUCKET/PREFIX; credentials, region and endpoint come from
/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL.
#[derive(Debug, Parser)]
#[command(name = "spawnscope fleet", bin_name = "spawnscope fleet", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print the lines, commands or labels that cost the most
    Top {
        /// Add up costs by line, command, or label:NAME
        #[arg(long, value_name = "WHAT", default_value = "line", value_parser = By::parse)]
        by: By,
        /// Order rows by this figure, largest first
        #[arg(long, value_enum, default_value_t = Order::Critical)]
        order: Order,
        #[command(flatten)]
        common: Common,
    },
    /// Print the mean cost of a run on each day
    Trend {
        #[command(flatten)]
        common: Common,
    },
    /// Print what changed since a date or commit, apart from noise
    ///
    /// For each script line and command, the runs of a job before and after are compared with each other, and one rank test combines the
    /// jobs. Counts are exact; times have an interval that contains the true difference with 95 % probability.
    Regressions {
        /// The first day, or the first commit, of the runs to compare with the earlier ones
        #[arg(long, value_name = "DATE|COMMIT", value_hint = ValueHint::Other)]
        since: String,
        #[command(flatten)]
        common: Common,
    },
    /// Print the cost of launches on each machine, which machines differ, and what `spawnscope doctor` found on those that differ
    Machines {
        #[command(flatten)]
        common: Common,
    },
    /// Print the latest result of `spawnscope doctor -o DATASET` on each machine
    Doctor {
        #[command(flatten)]
        common: Common,
    },
    /// Print the findings of `spawnscope advise` over all runs
    Advice {
        #[command(flatten)]
        common: Common,
    },
    /// Copy the files that another dataset lacks
    ///
    /// Both may be directories or s3://BUCKET/PREFIX. Any number of machines may push to the same dataset at once.
    Push {
        #[command(flatten)]
        dataset: DatasetArgument,
        /// The dataset to copy to
        #[arg(value_hint = ValueHint::DirPath)]
        to: PathBuf,
    },
    /// Run a query on the tables runs, launches, execs, callers, waits, advice and doctor
    Sql {
        #[command(flatten)]
        dataset: DatasetArgument,
        /// A query, such as "SELECT host, COUNT(*) FROM runs GROUP BY host"
        query: String,
        #[command(flatten)]
        output: Output,
    },
}

/// The dataset to query.
#[derive(Debug, Args)]
pub struct DatasetArgument {
    /// The directory of the dataset, or s3://BUCKET/PREFIX
    #[arg(value_hint = ValueHint::DirPath)]
    pub dataset: PathBuf,
}

/// How to write the answer.
#[derive(Debug, Args)]
pub struct Output {
    /// Print JSON: an array with an object for each row; times are in nanoseconds
    #[arg(long, conflicts_with = "html")]
    pub json: bool,
    /// Write the answer to FILE as a self-contained HTML page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
}

/// Arguments that all questions have.
#[derive(Debug, Args)]
pub struct Common {
    #[command(flatten)]
    pub dataset: DatasetArgument,
    /// Maximum number of rows
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub rows: u32,
    #[command(flatten)]
    pub output: Output,
}

/// What `top` adds up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    Line,
    Command,
    /// A label: its column in SQL.
    Label(&'static str),
}

/// The labels, each with its column in SQL.
const LABELS: [(&str, &str); 10] = [
    ("target", "l.target"),
    ("crate", "l.crate"),
    ("directory", "l.directory"),
    ("package", "l.package"),
    ("test", "l.test"),
    ("cmake", "l.cmake_target"),
    ("job", "r.job"),
    ("host", "r.host"),
    ("branch", "r.branch"),
    ("image", "r.image"),
];

impl By {
    fn parse(text: &str) -> Result<By, String> {
        match text {
            "line" => return Ok(By::Line),
            "command" => return Ok(By::Command),
            _ => {}
        }
        let name = text.strip_prefix("label:");
        let known = name.and_then(|name| LABELS.iter().find(|(label, _)| *label == name));
        known.map(|(_, column)| By::Label(column)).ok_or_else(|| {
            let names = LABELS.map(|(label, _)| label).join(", ");
            format!("use line, command or label:NAME, where NAME is one of {names}")
        })
    }
}

/// What `top` orders by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// Time on the critical path
    Critical,
    /// Wall time that the most worthwhile fix would save, as predicted; only with --by line
    Saving,
    /// Number of launches
    Count,
}
