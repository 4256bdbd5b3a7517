//! `fleet doctor`: what the latest `spawnscope doctor` found on each machine.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value};
use spawnscope_data::units;

use super::{columns, extent, nanos, time};
use crate::answer::{Answer, Row};
use crate::engine::Engine;
use crate::page::{Item, Page, Section, Table};
use crate::questions::Question;

/// The rows of the latest examination of each machine.
pub struct Examinations<'a>(BTreeMap<&'a str, Vec<Row<'a>>>);

/// Queries the latest examinations. The answer is empty if the dataset has no results of the doctor yet.
///
/// # Errors
/// When the query fails.
pub fn query_latest(engine: &Engine, rows: u32) -> Result<Answer> {
    if !engine.has_doctor() {
        return Ok(Answer::default());
    }
    engine.ask(&Question::Doctor.sql(&[("rows", &rows.to_string())])?)
}

impl<'a> Examinations<'a> {
    /// Groups the rows by machine.
    pub fn by_machine(found: &'a Answer) -> Examinations<'a> {
        let mut hosts: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for row in found.iter() {
            hosts.entry(row.text("host").unwrap_or_default()).or_default().push(row);
        }
        Examinations(hosts)
    }

    /// Returns the examination of a machine, with its date and findings, as JSON; null if there is none.
    pub fn to_json(&self, host: &str) -> Value {
        let Some(rows) = self.0.get(host) else {
            return Value::Null;
        };
        let findings = rows.iter().filter(|row| row.text("severity").is_some()).map(|row| {
            let columns = row.columns().filter(|(name, _)| !["host", "date"].contains(name));
            Value::Object(columns.map(|(name, value)| (name.to_owned(), value.clone())).collect())
        });
        let mut examination = Map::new();
        examination.insert("date".to_owned(), date(rows).into());
        examination.insert("findings".to_owned(), findings.collect());
        Value::Object(examination)
    }

    /// Counts the findings on a machine: `found there on 2026-11-13: 2 problems, 1 note`. `None` if it was not examined.
    pub fn summary(&self, host: &str) -> Option<String> {
        let rows = self.0.get(host)?;
        Some(format!("found there on {}: {}", date(rows), counts(rows)))
    }

    /// Returns a section with all findings on a machine. `None` if it was not examined.
    pub fn section(&self, host: &str) -> Option<Section> {
        let rows = self.0.get(host)?;
        let shown = rows.iter().filter(|row| row.text("severity") != Some("unseen"));
        Some(Section {
            heading: format!("What `spawnscope doctor` found on {host} on {}", date(rows)),
            items: shown.filter(|row| row.text("severity").is_some()).map(|row| item(*row)).collect(),
        })
    }
}

fn date<'a>(rows: &[Row<'a>]) -> &'a str {
    rows.first().and_then(|row| row.text("date")).unwrap_or("an unknown date")
}

/// Counts rows by severity: `2 problems, 1 note, 3 items that could not be checked`.
fn counts(rows: &[Row<'_>]) -> String {
    let [problems, notes, unseen] = ["problem", "note", "unseen"]
        .map(|severity| rows.iter().filter(|row| row.text("severity") == Some(severity)).count() as u64);
    let mut counts = match problems {
        0 => "no problems".to_owned(),
        problems => units::counted(problems, "problem", "problems"),
    };
    if notes > 0 {
        counts += &format!(", {}", units::counted(notes, "note", "notes"));
    }
    if unseen > 0 {
        counts += &format!(", {} that could not be checked", units::counted(unseen, "item", "items"));
    }
    counts
}

fn item(row: Row<'_>) -> Item {
    let note = if row.text("severity") == Some("note") { "note: " } else { "" };
    let evidence = row.text("evidence").filter(|evidence| !evidence.is_empty());
    let fix = row
        .text("fix")
        .unwrap_or_default()
        .lines()
        .map(|line| if line.starts_with("  ") { line.to_owned() } else { format!("-> {line}") });
    let cost = row.text("fix_cost").filter(|cost| !cost.is_empty());
    Item {
        title: format!("{note}{}", row.text("title").unwrap_or("-")),
        lines: effect(row)
            .map(|effect| format!("effect: {effect}"))
            .into_iter()
            .chain(evidence.map(str::to_owned))
            .chain(fix)
            .chain(cost.map(|cost| format!("cost of the fix: {cost}")))
            .collect(),
    }
}

/// Formats the effect for a table: `112 ms`, or `> 112 ms` if the timed program did not end.
fn effect_time(row: Row<'_>) -> String {
    let bound = if row.count("is_lower_bound") == Some(1) { "> " } else { "" };
    format!("{bound}{}", time(row, "effect_ns"))
}

/// Formats the effect as words: `more than 112 ms for each interactive shell (measured)`.
fn effect(row: Row<'_>) -> Option<String> {
    let span = nanos(Some(row.number("effect_ns")?));
    let more_than = if row.count("is_lower_bound") == Some(1) { "more than " } else { "" };
    Some(format!(
        "{more_than}{span} for {} ({})",
        row.text("effect_of").unwrap_or("each launch"),
        row.text("effect_basis").unwrap_or("basis unknown"),
    ))
}

/// Builds the page that shows an answer. `dataset` is the name of the dataset, for the command to type.
pub fn page(found: &Answer, totals: &Answer, dataset: &str) -> Page {
    let examinations = Examinations::by_machine(found);
    let sentence = match examinations.0.len() as u64 {
        0 => format!("No machine was examined: run `spawnscope doctor -o {dataset}` on each machine."),
        machines => format!(
            "{} examined: {}.",
            units::counted(machines, "machine was", "machines were"),
            counts(&found.iter().collect::<Vec<_>>())
        ),
    };
    Page {
        title: "What `spawnscope doctor` found on each machine".to_owned(),
        sentences: vec![sentence, extent(totals)],
        tables: vec![Table {
            columns: columns(&["machine", "examined", "severity", "check", "finding"], &["effect"]),
            rows: found.iter().map(cells).collect(),
        }],
        sections: Vec::new(),
    }
}

fn cells(row: Row<'_>) -> Vec<String> {
    vec![
        row.text("host").unwrap_or("-").to_owned(),
        row.text("date").unwrap_or("-").to_owned(),
        row.text("severity").unwrap_or("nothing found").to_owned(),
        row.text("check_name").unwrap_or("-").to_owned(),
        row.text("title").unwrap_or("-").to_owned(),
        effect_time(row),
    ]
}
