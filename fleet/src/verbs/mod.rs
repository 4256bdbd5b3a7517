//! The verbs: each queries the dataset, and builds the page that shows the answer.

mod advice;
mod doctor;
mod machines;
mod regressions;
mod sites;
mod top;
mod trend;

use std::fs;

use anyhow::{Context, Result, bail};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

use crate::answer::{Answer, Row};
use crate::arguments::{By, Common, Order, Output, Verb};
use crate::dataset::Dataset;
use crate::engine::Engine;
use crate::page::{Column, Page, Table};
use crate::present;
use crate::push;
use crate::questions::Question;
use crate::since::Since;

/// Runs a verb, and returns the text to print.
///
/// # Errors
/// When the dataset cannot be read, or a query fails.
pub fn run(verb: &Verb) -> Result<String> {
    match verb {
        Verb::Top { by, order, common } => {
            let question = match (by, order) {
                (By::Line, _) => Question::Lines,
                (_, Order::Saving) => bail!("--order saving: savings are known by line only; use --by line"),
                (By::Command, _) => Question::Commands,
                (By::Label(_), _) => Question::Labels,
            };
            let label = if let By::Label(column) = by { column } else { "" };
            let order = match order {
                Order::Critical => "critical_ns",
                Order::Saving => "saving_ns",
                Order::Count => "launches",
            };
            answer(common, question, &[("order", order), ("label", label)], |answer, totals| {
                top::page(answer, totals, by)
            })
        }
        Verb::Trend { common } => answer(common, Question::Trend, &[], trend::page),
        Verb::Regressions { since, common } => {
            let engine = Engine::open(&Dataset::open(&common.dataset.dataset)?)?;
            let since = Since::resolve(since, &engine)?;
            let compared = regressions::compared_runs(&engine, &since)?;
            answer_with(&engine, common, Question::Regressions, &[("since", &since.sql)], |answer, _| {
                regressions::page(answer, &since, &compared)
            })
        }
        Verb::Machines { common } => machines::answer(common),
        Verb::Doctor { common } => {
            let dataset = Dataset::open(&common.dataset.dataset)?;
            let engine = Engine::open(&dataset)?;
            let found = doctor::query_latest(&engine, common.rows)?;
            if common.output.json {
                return write(&common.output, &found, Page::default);
            }
            let totals = engine.ask(&Question::Totals.sql(&[])?)?;
            write(&common.output, &found, || doctor::page(&found, &totals, &dataset.name))
        }
        Verb::Advice { common } => answer(common, Question::Advice, &[], advice::page),
        Verb::Push { dataset, to } => push::push(&Dataset::open(&dataset.dataset)?, &Dataset::open_or_create(to)?),
        Verb::Sql { dataset, query, output } => {
            let engine = Engine::open(&Dataset::open(&dataset.dataset)?)?;
            let found = engine.ask(query)?;
            write(output, &found, || sql_page(query, &found))
        }
    }
}

/// Opens the dataset, runs a query, and writes the answer.
fn answer(
    common: &Common,
    question: Question,
    parameters: &[(&str, &str)],
    page: impl FnOnce(&Answer, &Answer) -> Page,
) -> Result<String> {
    let engine = Engine::open(&Dataset::open(&common.dataset.dataset)?)?;
    answer_with(&engine, common, question, parameters, page)
}

/// Runs a query, and writes the answer. `page` also gets the totals of the dataset.
fn answer_with(
    engine: &Engine,
    common: &Common,
    question: Question,
    parameters: &[(&str, &str)],
    page: impl FnOnce(&Answer, &Answer) -> Page,
) -> Result<String> {
    let rows = common.rows.to_string();
    let parameters: Vec<_> = parameters.iter().copied().chain([("rows", rows.as_str())]).collect();
    let found = engine.ask(&question.sql(&parameters)?)?;
    if common.output.json {
        return write(&common.output, &found, Page::default);
    }
    let totals = engine.ask(&Question::Totals.sql(&[])?)?;
    write(&common.output, &found, || page(&found, &totals))
}

/// Formats the answer as requested. Returns the text to print, which is empty if the answer was written to a file.
fn write(output: &Output, found: &Answer, page: impl FnOnce() -> Page) -> Result<String> {
    if output.json {
        return Ok(format!("{:#}\n", found.to_json()));
    }
    let page = page();
    let Some(file) = &output.html else {
        return Ok(present::text(&page));
    };
    fs::write(file, present::html(&page)?).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(String::new())
}

/// Builds the page of the verb `sql`, which shows all columns as they are.
fn sql_page(query: &str, found: &Answer) -> Page {
    let columns = found.columns.iter().enumerate().map(|(index, title)| {
        let is_figure = found.rows.iter().all(|row| row[index].is_number() || row[index].is_null());
        Column { title: title.clone(), is_figure }
    });
    Page {
        title: query.to_owned(),
        sentences: vec![units::counted(found.rows.len() as u64, "row", "rows")],
        tables: vec![Table {
            columns: columns.collect(),
            rows: found.rows.iter().map(|row| row.iter().map(cell).collect()).collect(),
        }],
        sections: Vec::new(),
    }
}

fn cell(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Describes the size of the dataset: `2,800 runs of 200 jobs on 20 machines, 2026-11-01 to 2026-11-14, 1,204,000 launches`.
fn extent(totals: &Answer) -> String {
    let Some(row) = totals.iter().next() else {
        return String::new();
    };
    let [runs, jobs, machines, launches] = [
        ("runs", "run", "runs"),
        ("jobs", "job", "jobs"),
        ("hosts", "machine", "machines"),
        ("launches", "launch", "launches"),
    ]
    .map(|(column, one, many)| units::counted(row.count(column).unwrap_or_default() as u64, one, many));
    let dates = match (row.text("first_date"), row.text("last_date")) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(date), _) => date.to_owned(),
        _ => "dates unknown".to_owned(),
    };
    let losses = match row.count("runs_with_losses") {
        Some(runs) if runs > 0 => {
            format!("; {} lost events, so their counts are too low", units::counted(runs as u64, "run", "runs"))
        }
        _ => String::new(),
    };
    format!("{runs} of {jobs} on {machines}, {dates}, {launches}{losses}")
}

/// Formats the nanoseconds in a column as a time; `-` if unknown.
fn time(row: Row<'_>, column: &str) -> String {
    nanos(row.number(column))
}

/// Formats nanoseconds, which may be negative, as a time; `-` if unknown.
fn nanos(value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", units::time(Nanos(value.abs().round() as u64)))
}

/// Formats the whole number in a column; `-` if unknown.
fn count(row: Row<'_>, column: &str) -> String {
    row.count(column).map_or_else(|| "-".to_owned(), |number| units::count(number.max(0) as u64))
}

/// Makes columns of names and of figures, from their titles.
fn columns(names: &[&str], figures: &[&str]) -> Vec<Column> {
    let names = names.iter().map(|title| Column::name(title));
    names.chain(figures.iter().map(|title| Column::figure(title))).collect()
}
