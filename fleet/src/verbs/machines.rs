//! `fleet machines`: the cost of launches on each machine, which machines differ, and what `spawnscope doctor` found on those that differ.

use anyhow::Result;

use super::doctor::{self, Examinations};
use super::{columns, count, extent, nanos, time, write};
use crate::answer::{Answer, Row};
use crate::arguments::Common;
use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::page::{Page, Table};
use crate::questions::Question;

/// Queries the machines and the doctor's findings, and writes the answer.
///
/// # Errors
/// When the dataset cannot be read, or a query fails.
pub fn answer(common: &Common) -> Result<String> {
    let dataset = Dataset::open(&common.dataset.dataset)?;
    let engine = Engine::open(&dataset)?;
    let rows = common.rows.to_string();
    let mut found = engine.ask(&Question::Machines.sql(&[("rows", &rows)])?)?;
    // `--rows` limits the number of machines, not the number of their findings.
    let latest = doctor::query_latest(&engine, i32::MAX as u32)?;
    let examinations = Examinations::by_machine(&latest);
    if common.output.json {
        let column = found.iter().map(|row| examinations.to_json(row.text("host").unwrap_or_default())).collect();
        found.add_column("doctor", column);
        return write(&common.output, &found, Page::default);
    }
    let totals = engine.ask(&Question::Totals.sql(&[])?)?;
    write(&common.output, &found, || page(&found, &totals, &examinations, &dataset.name))
}

/// Builds the page that shows an answer. `dataset` is the name of the dataset, for the command to type.
fn page(found: &Answer, totals: &Answer, examinations: &Examinations<'_>, dataset: &str) -> Page {
    let outliers: Vec<Row<'_>> = found.iter().filter(|row| row.count("is_outlier") == Some(1)).collect();
    let mut sentences: Vec<String> = outliers.iter().map(|row| sentence(*row, examinations, dataset)).collect();
    if found.rows.is_empty() {
        sentences.push("Nothing to compare: no command of a job ran on two machines.".to_owned());
    } else if outliers.is_empty() {
        sentences.push("No machine's launches cost clearly more or less than those of the others.".to_owned());
    }
    sentences.push(extent(totals));
    Page {
        title: "Launches by machine".to_owned(),
        sentences,
        tables: vec![Table {
            columns: columns(
                &["machine"],
                &["runs", "launches", "per launch", "vs others", "scanner waits", "verdict"],
            ),
            rows: found.iter().map(cells).collect(),
        }],
        sections: outliers.iter().filter_map(|row| examinations.section(host(*row))).collect(),
    }
}

fn cells(row: Row<'_>) -> Vec<String> {
    vec![
        host(row).to_owned(),
        count(row, "runs"),
        count(row, "launches"),
        time(row, "launch_ns"),
        ratio(row).unwrap_or_else(|| "-".to_owned()),
        time(row, "scanner_ns"),
        if row.count("is_outlier") == Some(1) { "differs" } else { "" }.to_owned(),
    ]
}

fn host(row: Row<'_>) -> &str {
    row.text("host").filter(|host| !host.is_empty()).unwrap_or("(unknown)")
}

/// Returns the cost of the same commands in relation to the other machines, with its interval: `1.52 +- 0.04`.
fn ratio(row: Row<'_>) -> Option<String> {
    let ratio = row.number("against_others")?;
    let width = row.number("half_width").map(|width| format!(" +- {width:.2}")).unwrap_or_default();
    Some(format!("{ratio:.2}{width}"))
}

fn sentence(row: Row<'_>, examinations: &Examinations<'_>, dataset: &str) -> String {
    let ratio = ratio(row).unwrap_or_default();
    let scanner = match row.number("scanner_ns") {
        Some(waits) if waits > 0.0 => format!(" Its launches waited {} for a scanner.", nanos(Some(waits))),
        _ => String::new(),
    };
    let doctor = match examinations.summary(host(row)) {
        Some(found) => format!("`spawnscope doctor` {found}."),
        None => format!("`spawnscope doctor` was not run there: run `spawnscope doctor -o {dataset}` on it."),
    };
    format!(
        "{}: launches cost {ratio} times what the same commands of the same jobs cost on the others ({} per launch).{scanner} {doctor}",
        host(row),
        time(row, "launch_ns"),
    )
}
