//! `fleet top`: the lines, commands or labels that cost the most.

use super::{columns, count, extent, sites, time};
use crate::answer::{Answer, Row};
use crate::arguments::By;
use crate::page::{Page, Table};

/// Builds the page that shows an answer.
pub fn page(found: &Answer, totals: &Answer, by: &By) -> Page {
    let (title, name, figures): (_, _, &[&str]) = match by {
        By::Line => ("Lines that cost the most", "line", &["runs", "launches", "critical", "tax", "fix saves"]),
        By::Command => ("Commands that cost the most", "command", FIGURES),
        By::Label(_) => ("Labels that cost the most", "label", FIGURES),
    };
    let rows = found.iter().map(|row| match by {
        By::Line => vec![
            sites::name(row),
            count(row, "runs"),
            count(row, "launches"),
            time(row, "critical_ns"),
            time(row, "tax_ns"),
            time(row, "saving_ns"),
        ],
        By::Command => cells(row.text("command").unwrap_or("-"), row),
        By::Label(_) => cells(row.text("label").unwrap_or("(none)"), row),
    });
    Page {
        title: title.to_owned(),
        sentences: vec![extent(totals)],
        tables: vec![Table { columns: columns(&[name], figures), rows: rows.collect() }],
        sections: Vec::new(),
    }
}

/// The titles of the figures of commands and labels, in the order of `cells`.
const FIGURES: &[&str] = &["runs", "launches", "critical", "critical tax", "cpu"];

fn cells(name: &str, row: Row<'_>) -> Vec<String> {
    vec![
        name.to_owned(),
        count(row, "runs"),
        count(row, "launches"),
        time(row, "critical_ns"),
        time(row, "critical_tax_ns"),
        time(row, "cpu_ns"),
    ]
}
