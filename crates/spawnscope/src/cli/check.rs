//! `spawnscope check`: fails when a command exceeds a budget for its launches. Budgets are read
//! from the command line and from spawnscope.toml; an option overrides the same budget of the file.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum, ValueHint};
use serde::{Deserialize, Deserializer};

use super::args::{DEFAULT_FILE, parse_count};
use super::exit::{self, Status};
use super::{diff, output, report};
use crate::analyze::GroupBy;
use crate::analyze::compare::budgets::{Budgets, Check, CommandBudget, Tolerance, check, growth};
use crate::analyze::compare::diff::{Grouping, Run, compare};
use crate::analyze::model::window::Part;
use crate::event::Nanos;
use crate::present::check as present;

/// Maximum size of our job summary. GitHub refuses summaries of 1 MiB or more, counting all
/// programs of a step.
const MAX_SUMMARY_BYTES: usize = 900 * 1024;
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

pub fn run(arguments: &CheckArguments) -> Result<Status> {
    let requested = CheckRequest::from_arguments(arguments)?;
    let runs = read_all(&arguments.files)?;
    // The first run stands for all, since they are runs of one version.
    let first = report::read(&arguments.files[0], Part::Whole, GroupBy::Command)?;
    let mut outcome = check(&runs, &requested.budgets, &first.advices)?;
    if !requested.against.is_empty() {
        let baseline = read_all(&requested.against).context("--against")?;
        let difference = compare(&baseline, &runs, Grouping::Lines);
        outcome.verdicts.extend(growth(&difference, requested.tolerance));
    }
    if outcome.verdicts.is_empty() {
        bail!(
            "no budget: give one, such as --max-launches 500, or write a spawnscope.toml (`spawnscope check --help`)"
        );
    }
    let text = match arguments.format {
        CheckFormat::Text => output::with_glyphs(present::text(&outcome, output::width(&io::stdout()))),
        CheckFormat::Github => present::github(&outcome, &workspace()),
        CheckFormat::Markdown => present::markdown(&outcome),
        CheckFormat::Json => present::json(&outcome),
    };
    output::print(&text, "result")?;
    if arguments.format == CheckFormat::Github {
        append_job_summary(&outcome)?;
    }
    Ok(if outcome.is_kept() { Status::SUCCESS } else { Status::Code(exit::EXCEEDED) })
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Run>> {
    files.iter().map(|file| Ok(diff::read(file, None)?.0)).collect()
}

/// Returns the directory of the sources, to which file names in annotations are relative.
fn workspace() -> PathBuf {
    env::var_os("GITHUB_WORKSPACE").map(PathBuf::from).or_else(|| env::current_dir().ok()).unwrap_or_default()
}

/// Appends the result to the job summary, whose file GITHUB_STEP_SUMMARY names.
fn append_job_summary(outcome: &Check) -> Result<()> {
    let Some(path) = env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) else { return Ok(()) };
    let path = Path::new(&path);
    let summary = present::truncate_markdown(present::markdown(outcome), MAX_SUMMARY_BYTES);
    let written =
        OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(summary.as_bytes()));
    written.with_context(|| format!("failed to write the job summary to {} ({SUMMARY_VARIABLE})", path.display()))
}

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope check --max-launches 500
  spawnscope check --per-command git=50 --per-line 100 ci.db
  spawnscope check --against main.db --tolerance 5% ci.db
  spawnscope check --max-wall 2s ci.1.db ci.2.db ci.3.db
  spawnscope check --format github ci.db   # in GitHub Actions
  spawnscope check ci.db                   # budgets of spawnscope.toml

Several recordings are runs of one version (`record --runs 5`): `check` compares
the median of each count with its budget. A time exceeds its budget if the lower
end of its 95 % interval does; for a single recording, an interval of 5 % on
either side is assumed.

spawnscope.toml has the same budgets; options take precedence:
  [check]
  max-launches = 500
  max-critical-tax = \"20%\"
  [check.per-command]
  git = 50

Exit status: 0 if all budgets are met, 1 if one is exceeded, 125 if
spawnscope itself fails.";

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The recordings: runs of one version; - is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub budgets: BudgetArguments,
    /// File with budgets [default: spawnscope.toml, if it exists]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
}

/// Budgets: the options, and the section `check` of spawnscope.toml.
#[derive(Debug, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct BudgetArguments {
    /// At most N launches
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub max_launches: Option<u64>,
    /// At most N forks that run no other program
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub max_forks_without_exec: Option<u64>,
    /// At most N failed execs
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub max_failed_execs: Option<u64>,
    /// At most this share of the wall time for start-up (launch tax) on the critical path, such as
    /// 20%
    #[arg(long, value_name = "SHARE", value_hint = ValueHint::Other)]
    pub max_critical_tax: Option<String>,
    /// At most this wall time, such as 2s or 800ms
    #[arg(long, value_name = "TIME", value_hint = ValueHint::Other)]
    pub max_wall: Option<String>,
    /// At most N launches from any one script line
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub per_line: Option<u64>,
    /// At most N launches of a program (a glob on its base name); can be repeated
    #[arg(long, value_name = "PROGRAM=N", value_hint = ValueHint::Other, value_parser = parse_command_budget)]
    #[serde(deserialize_with = "read_command_budgets")]
    pub per_command: Vec<(String, u64)>,
    /// At most as many launches, forks without exec and failed execs as in this recording; if
    /// repeated for several runs, the wall time is limited too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub against: Vec<PathBuf>,
    /// Permitted increase over --against: a share such as 5%, or a number of launches [default: 0]
    #[arg(long, value_name = "MORE", value_hint = ValueHint::Other)]
    pub tolerance: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Text for the terminal
    Text,
    /// Annotations of GitHub Actions, and a job summary if GITHUB_STEP_SUMMARY is set
    Github,
    /// Markdown
    Markdown,
    /// JSON (schema_version 1)
    Json,
}

const DEFAULT_CONFIG: &str = "spawnscope.toml";
/// Units of --max-wall, with their lengths in nanoseconds.
const UNITS: [(&str, f64); 5] = [("us", 1e3), ("ms", 1e6), ("ns", 1.0), ("s", 1e9), ("min", 60e9)];

#[derive(Debug)]
struct CheckRequest {
    budgets: Budgets,
    against: Vec<PathBuf>,
    tolerance: Tolerance,
}

/// spawnscope.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    check: BudgetArguments,
}

impl CheckRequest {
    /// Combines the options with the budgets of the file.
    fn from_arguments(arguments: &CheckArguments) -> Result<CheckRequest> {
        let (mut file, directory) = match &arguments.config {
            Some(path) => (read(path)?, path.parent()),
            None if Path::new(DEFAULT_CONFIG).exists() => (read(Path::new(DEFAULT_CONFIG))?, None),
            None => (BudgetArguments::default(), None),
        };
        let directory = directory.unwrap_or(Path::new(""));
        file.against.iter_mut().for_each(|baseline| *baseline = directory.join(&baseline));
        CheckRequest::join(&arguments.budgets, &file)
    }

    fn join(options: &BudgetArguments, file: &BudgetArguments) -> Result<CheckRequest> {
        let share = options.max_critical_tax.as_deref().or(file.max_critical_tax.as_deref());
        let wall = options.max_wall.as_deref().or(file.max_wall.as_deref());
        let tolerance = options.tolerance.as_deref().or(file.tolerance.as_deref());
        // An option overrides the budget of the file for the same glob.
        let per_command: BTreeMap<_, _> = file.per_command.iter().chain(&options.per_command).cloned().collect();
        let per_command = per_command.iter().map(|(name, limit)| CommandBudget::new(name, *limit));
        Ok(CheckRequest {
            budgets: Budgets {
                launches: options.max_launches.or(file.max_launches),
                forks_without_exec: options.max_forks_without_exec.or(file.max_forks_without_exec),
                failed_execs: options.max_failed_execs.or(file.max_failed_execs),
                critical_tax: share.map(parse_share).transpose().context("--max-critical-tax")?,
                wall: wall.map(parse_time).transpose().context("--max-wall")?,
                per_line: options.per_line.or(file.per_line),
                per_command: per_command.collect::<Result<_, _>>().context("--per-command")?,
            },
            tolerance: tolerance.map_or(Ok(Tolerance::Count(0)), parse_tolerance).context("--tolerance")?,
            against: if options.against.is_empty() { file.against.clone() } else { options.against.clone() },
        })
    }
}

fn read(path: &Path) -> Result<BudgetArguments> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => anyhow!("it is not text"),
        _ => error.into(),
    });
    let text = text.with_context(|| format!("failed to read the budgets in {}", path.display()))?;
    let config: Config =
        toml::from_str(&text).with_context(|| format!("failed to read the budgets in {}", path.display()))?;
    Ok(config.check)
}

fn parse_command_budget(text: &str) -> Result<(String, u64), String> {
    let budget = text.rsplit_once('=').and_then(|(name, limit)| Some((name.to_owned(), limit.parse().ok()?)));
    budget.ok_or_else(|| "give PROGRAM=N, such as git=50".to_owned())
}

fn read_command_budgets<'de, D: Deserializer<'de>>(table: D) -> Result<Vec<(String, u64)>, D::Error> {
    Ok(BTreeMap::deserialize(table)?.into_iter().collect())
}

/// Parses a share: `20%`, `20 %` or `0.2`.
fn parse_share(text: &str) -> Result<f64> {
    let (number, scale) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share
        .filter(|share| (0.0..=10.0).contains(share))
        .ok_or_else(|| anyhow!("`{text}` is not a share: give a percentage such as 20%"))
}

/// Parses a time with its unit: `2s`, `800ms`, `1.5 s`.
fn parse_time(text: &str) -> Result<Nanos> {
    let trimmed = text.trim();
    let unit_at = trimmed.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(unit_at);
    let length = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, length)| *length);
    let time = number.trim().parse::<f64>().ok().zip(length).map(|(number, length)| number * length);
    match time {
        Some(time) if (1.0..1e18).contains(&time) => Ok(Nanos(time as u64)),
        _ => bail!("`{text}` is not a time: give a number and a unit, such as 2s or 800ms"),
    }
}

fn parse_tolerance(text: &str) -> Result<Tolerance> {
    if let Ok(count) = text.trim().parse() {
        return Ok(Tolerance::Count(count));
    }
    let share = text.contains('%').then(|| parse_share(text).ok()).flatten();
    share
        .map(Tolerance::Share)
        .ok_or_else(|| anyhow!("`{text}` is neither a share such as 5% nor a number of launches"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_take_precedence_over_the_file() {
        let config: Config = toml::from_str(
            "[check]\nagainst = [\"base.db\"]\nmax-launches = 5\nmax-wall = \"2s\"\nper-line = 7\n[check.per-command]\ngit = 50\nsed = 1\n",
        )
        .unwrap();
        let options = BudgetArguments {
            max_launches: Some(9),
            per_command: vec![("git".to_owned(), 3)],
            ..BudgetArguments::default()
        };
        let requested = CheckRequest::join(&options, &config.check).unwrap();
        let budgets = requested.budgets;
        assert_eq!((budgets.launches, budgets.per_line, budgets.wall), (Some(9), Some(7), Some(Nanos(2_000_000_000))));
        let commands: Vec<(&str, u64)> =
            budgets.per_command.iter().map(|each| (each.name.as_str(), each.max_launches)).collect();
        assert_eq!(commands, [("git", 3), ("sed", 1)]);
        assert_eq!(requested.against, [PathBuf::from("base.db")]);
    }

    #[test]
    fn a_misspelt_budget_is_an_error() {
        for text in
            ["[check]\nmax-launch = 5", "[checks]\n", "[check]\nmax-launches = -1", "[check]\nmax-launches = \"many\""]
        {
            assert!(toml::from_str::<Config>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_times_and_tolerances_are_parsed() {
        for (text, share) in
            [("20%", Some(0.2)), ("0.5", Some(0.5)), ("20 %", Some(0.2)), ("-1%", None), ("x", None), ("nan", None)]
        {
            assert_eq!(parse_share(text).ok(), share, "{text}");
        }
        for (text, time) in [
            ("2s", Some(2_000_000_000)),
            ("1.5 ms", Some(1_500_000)),
            ("2", None),
            ("s", None),
            ("-1s", None),
            ("1e30s", None),
        ] {
            assert_eq!(parse_time(text).ok(), time.map(Nanos), "{text}");
        }
        assert_eq!(parse_tolerance("5%").unwrap(), Tolerance::Share(0.05));
        assert_eq!(parse_tolerance("3").unwrap(), Tolerance::Count(3));
        assert!(parse_tolerance("some").is_err());
    }
}
