//! `fleet regressions`: what changed since a date or commit, one sentence each.

use anyhow::{Result, bail};
use spawnscope_data::units;

use super::{columns, nanos, sites};
use crate::answer::{Answer, Row};
use crate::engine::Engine;
use crate::page::{Page, Table};
use crate::since::Since;

/// Counts the runs on both sides.
///
/// # Errors
/// When there are none on one side, so that nothing can be compared.
pub fn compared(engine: &Engine, since: &Since) -> Result<String> {
    let sql = format!(
        "SELECT SUM(CASE WHEN started < {0} THEN 1 ELSE 0 END) AS earlier, SUM(CASE WHEN started >= {0} THEN 1 ELSE 0 END) AS later FROM runs",
        since.sql
    );
    let found = engine.ask(&sql)?;
    let count = |column: &str| {
        found
            .iter()
            .next()
            .and_then(|row| row.count(column))
            .unwrap_or_default() as u64
    };
    let (earlier, later) = (count("earlier"), count("later"));
    if earlier == 0 || later == 0 {
        bail!(
            "{} has {later} runs since then and {earlier} before: a comparison needs both",
            since.words
        );
    }
    Ok(format!(
        "{} before {} compared with {} since then.",
        units::counted(earlier, "run", "runs"),
        since.words,
        units::counted(later, "run", "runs"),
    ))
}

/// The page of the answer.
pub fn page(found: &Answer, since: &Since, compared: &str) -> Page {
    let mut sentences: Vec<String> = found.iter().map(|row| sentence(row, since)).collect();
    if sentences.is_empty() {
        sentences.push(format!("Nothing changed since {} beyond noise.", since.words));
    }
    sentences.push(compared.to_owned());
    let row = |row: Row<'_>| {
        vec![
            row.text("command").unwrap_or("-").to_owned(),
            site(row),
            format!(
                "{} of {}",
                units::count(count(row, "changed_jobs")),
                units::count(count(row, "jobs"))
            ),
            per_run(row, "launches_before"),
            per_run(row, "launches_after"),
            nanos(row.number("critical_before_ns")),
            nanos(row.number("critical_after_ns")),
        ]
    };
    let figures = ["jobs", "before", "after", "critical before", "after"];
    Page {
        title: format!("Changes since {}", since.words),
        sentences,
        tables: vec![Table {
            columns: columns(&["command", "line"], &figures),
            rows: found.iter().map(row).collect(),
        }],
        sections: Vec::new(),
    }
}

fn count(row: Row<'_>, column: &str) -> u64 {
    row.count(column).unwrap_or_default().max(0) as u64
}

fn site(row: Row<'_>) -> String {
    let is_known = row.text("file").is_some_and(|file| !file.is_empty());
    if is_known {
        sites::name(row)
    } else {
        "(line unknown)".to_owned()
    }
}

/// Launches of a mean run.
fn per_run(row: Row<'_>, column: &str) -> String {
    row.number(column)
        .map_or_else(|| "-".to_owned(), |launches| format!("{launches:.1}"))
}

/// `git from build.sh:41: 0.0 -> 20.0 launches a run in 100 of 200 jobs, +41.2 ms +- 0.9 ms critical a run`.
fn sentence(row: Row<'_>, since: &Since) -> String {
    let number = |column: &str| row.number(column).unwrap_or_default();
    let difference = number("critical_after_ns") - number("critical_before_ns");
    let sign = if difference < 0.0 { "" } else { "+" };
    let launches = if number("launches_before") == number("launches_after") {
        format!("{} launches a run, unchanged", per_run(row, "launches_after"))
    } else {
        format!(
            "{} -> {} launches a run",
            per_run(row, "launches_before"),
            per_run(row, "launches_after")
        )
    };
    let jobs = match (count(row, "changed_jobs"), count(row, "jobs")) {
        (0, jobs) => units::counted(jobs, "job", "jobs"),
        (changed, jobs) => format!("{} of {}", units::count(changed), units::counted(jobs, "job", "jobs")),
    };
    format!(
        "{} from {}: {launches} in {jobs} since {}; {sign}{} critical time a run (+- {}).",
        row.text("command").unwrap_or("-"),
        site(row),
        since.words,
        nanos(Some(difference)),
        nanos(row.number("critical_half_width_ns")),
    )
}
