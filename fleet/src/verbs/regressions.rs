//! `fleet regressions`: what changed since a date or commit, with a sentence for each change.

use anyhow::{Result, bail};
use spawnscope_data::units;

use super::{columns, nanos, sites};
use crate::answer::{Answer, Row};
use crate::engine::Engine;
use crate::page::{Page, Table};
use crate::since::Since;

/// Counts the runs before and after the point in time, as a sentence.
///
/// # Errors
/// When there are no runs before or after it, so that nothing can be compared.
pub fn compared_runs(engine: &Engine, since: &Since) -> Result<String> {
    let sql = format!(
        "SELECT SUM(CASE WHEN started < {0} THEN 1 ELSE 0 END) AS earlier, SUM(CASE WHEN started >= {0} THEN 1 ELSE 0 END) AS later FROM runs",
        since.sql
    );
    let found = engine.ask(&sql)?;
    let (earlier, later) = found.iter().next().map_or((0, 0), |row| (count(row, "earlier"), count(row, "later")));
    if earlier == 0 || later == 0 {
        bail!(
            "there are {} before {} and {} since: a comparison needs runs on both sides",
            units::counted(earlier, "run", "runs"),
            since.words,
            units::counted(later, "run", "runs"),
        );
    }
    Ok(format!(
        "Compared {} before {} with {} since.",
        units::counted(earlier, "run", "runs"),
        since.words,
        units::counted(later, "run", "runs"),
    ))
}

/// Builds the page that shows an answer. `compared` is the sentence about the compared runs.
pub fn page(found: &Answer, since: &Since, compared: &str) -> Page {
    let mut sentences: Vec<String> = found.iter().map(|row| sentence(row, since)).collect();
    if sentences.is_empty() {
        sentences.push(format!("Nothing changed since {} beyond noise.", since.words));
    }
    sentences.push(compared.to_owned());
    let figures = ["jobs", "before", "after", "critical before", "critical after"];
    Page {
        title: format!("Changes since {}", since.words),
        sentences,
        tables: vec![Table {
            columns: columns(&["command", "line"], &figures),
            rows: found.iter().map(cells).collect(),
        }],
        sections: Vec::new(),
    }
}

fn cells(row: Row<'_>) -> Vec<String> {
    vec![
        row.text("command").unwrap_or("-").to_owned(),
        site(row),
        format!("{} of {}", units::count(count(row, "changed_jobs")), units::count(count(row, "jobs"))),
        per_run(row, "launches_before"),
        per_run(row, "launches_after"),
        nanos(row.number("critical_before_ns")),
        nanos(row.number("critical_after_ns")),
    ]
}

fn count(row: Row<'_>, column: &str) -> u64 {
    row.count(column).unwrap_or_default().max(0) as u64
}

fn site(row: Row<'_>) -> String {
    let is_known = row.text("file").is_some_and(|file| !file.is_empty());
    if is_known { sites::name(row) } else { "(line unknown)".to_owned() }
}

/// Formats the mean number of launches in a run.
fn per_run(row: Row<'_>, column: &str) -> String {
    row.number(column).map_or_else(|| "-".to_owned(), |launches| format!("{launches:.1}"))
}

/// Describes a change: `git from build.sh:41: 0.0 -> 20.0 launches per run in 100 of 200 jobs since 2026-11-09; +41.2 ms critical time per
/// run (+- 900 us).`
fn sentence(row: Row<'_>, since: &Since) -> String {
    let figures = ["critical_before_ns", "critical_after_ns", "launches_before", "launches_after"];
    let [before, after, launches_before, launches_after] = figures.map(|name| row.number(name).unwrap_or_default());
    let difference = after - before;
    let sign = if difference < 0.0 { "" } else { "+" };
    let launches = if launches_before == launches_after {
        format!("{} launches per run, unchanged,", per_run(row, "launches_after"))
    } else {
        format!("{} -> {} launches per run", per_run(row, "launches_before"), per_run(row, "launches_after"))
    };
    let jobs = match (count(row, "changed_jobs"), count(row, "jobs")) {
        (0, jobs) => units::counted(jobs, "job", "jobs"),
        (changed, jobs) => format!("{} of {}", units::count(changed), units::counted(jobs, "job", "jobs")),
    };
    format!(
        "{} from {}: {launches} in {jobs} since {}; {sign}{} critical time per run (+- {}).",
        row.text("command").unwrap_or("-"),
        site(row),
        since.words,
        nanos(Some(difference)),
        nanos(row.number("critical_half_width_ns")),
    )
}
