//! Reads the budgets from the command line and from spawnscope.toml. An option overrides the same
//! budget of the file.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use super::{BudgetArguments, CheckArguments};
use crate::analyze::compare::budgets::{Budgets, CommandBudget, Tolerance};
use crate::event::Nanos;

const DEFAULT_CONFIG: &str = "spawnscope.toml";
/// Units of --max-wall, with their lengths in nanoseconds.
const UNITS: [(&str, f64); 5] = [("us", 1e3), ("ms", 1e6), ("ns", 1.0), ("s", 1e9), ("min", 60e9)];

#[derive(Debug)]
pub(super) struct CheckRequest {
    pub(super) budgets: Budgets,
    pub(super) against: Vec<PathBuf>,
    pub(super) tolerance: Tolerance,
}

/// spawnscope.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    check: Section,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Section {
    max_launches: Option<u64>,
    max_forks_without_exec: Option<u64>,
    max_failed_execs: Option<u64>,
    max_critical_tax: Option<String>,
    max_wall: Option<String>,
    per_line: Option<u64>,
    per_command: BTreeMap<String, u64>,
    against: Vec<PathBuf>,
    tolerance: Option<String>,
}

impl CheckRequest {
    /// Combines the options with the budgets of the file.
    pub(super) fn from_arguments(arguments: &CheckArguments) -> Result<CheckRequest> {
        let (section, directory) = match &arguments.config {
            Some(path) => (read(path)?, path.parent()),
            None if Path::new(DEFAULT_CONFIG).exists() => (read(Path::new(DEFAULT_CONFIG))?, None),
            None => (Section::default(), None),
        };
        let directory = directory.unwrap_or(Path::new(""));
        let file_baseline = section.against.iter().map(|file| directory.join(file)).collect();
        CheckRequest::join(&arguments.budgets, &section, file_baseline)
    }

    fn join(options: &BudgetArguments, section: &Section, file_baseline: Vec<PathBuf>) -> Result<CheckRequest> {
        let share = options.max_critical_tax.as_deref().or(section.max_critical_tax.as_deref());
        let wall = options.max_wall.as_deref().or(section.max_wall.as_deref());
        let tolerance = options.tolerance.as_deref().or(section.tolerance.as_deref());
        Ok(CheckRequest {
            budgets: Budgets {
                launches: options.max_launches.or(section.max_launches),
                forks_without_exec: options.max_forks_without_exec.or(section.max_forks_without_exec),
                failed_execs: options.max_failed_execs.or(section.max_failed_execs),
                critical_tax: share.map(parse_share).transpose().context("--max-critical-tax")?,
                wall: wall.map(parse_time).transpose().context("--max-wall")?,
                per_line: options.per_line.or(section.per_line),
                per_command: per_command(options, section)?,
            },
            tolerance: tolerance.map_or(Ok(Tolerance::Count(0)), parse_tolerance).context("--tolerance")?,
            against: if options.against.is_empty() { file_baseline } else { options.against.clone() },
        })
    }
}

fn read(path: &Path) -> Result<Section> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => anyhow!("it is not text"),
        _ => error.into(),
    });
    let text = text.with_context(|| format!("failed to read the budgets in {}", path.display()))?;
    let config: Config =
        toml::from_str(&text).with_context(|| format!("failed to read the budgets in {}", path.display()))?;
    Ok(config.check)
}

/// Returns the budgets of programs. An option overrides the file's budget for the same glob.
fn per_command(options: &BudgetArguments, section: &Section) -> Result<Vec<CommandBudget>> {
    let mut budgets = section.per_command.clone();
    for text in &options.per_command {
        let budget = text.rsplit_once('=').and_then(|(name, limit)| Some((name, limit.parse().ok()?)));
        let (name, limit) =
            budget.with_context(|| format!("--per-command `{text}`: give PROGRAM=N, such as git=50"))?;
        budgets.insert(name.to_owned(), limit);
    }
    budgets.iter().map(|(name, limit)| CommandBudget::new(name, *limit).context("--per-command")).collect()
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
            "[check]\nmax-launches = 5\nmax-wall = \"2s\"\nper-line = 7\n[check.per-command]\ngit = 50\nsed = 1\n",
        )
        .unwrap();
        let options = BudgetArguments {
            max_launches: Some(9),
            per_command: vec!["git=3".to_owned()],
            ..BudgetArguments::default()
        };
        let requested = CheckRequest::join(&options, &config.check, vec!["base.db".into()]).unwrap();
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
