//! `fleet trend`: the mean cost of a run on each day.

use super::{columns, count, extent, time};
use crate::answer::{Answer, Row};
use crate::page::{Page, Table};

/// Builds the page that shows an answer.
pub fn page(found: &Answer, totals: &Answer) -> Page {
    Page {
        title: "Mean cost of a run by day".to_owned(),
        sentences: vec![extent(totals)],
        tables: vec![Table {
            columns: columns(&["date"], &["runs", "launches", "wall", "tax", "critical tax"]),
            rows: found.iter().map(cells).collect(),
        }],
        sections: Vec::new(),
    }
}

fn cells(row: Row<'_>) -> Vec<String> {
    vec![
        row.text("date").unwrap_or("-").to_owned(),
        count(row, "runs"),
        row.number("launches_per_run").map_or_else(|| "-".to_owned(), |launches| format!("{launches:.1}")),
        time(row, "wall_ns_per_run"),
        time(row, "tax_ns_per_run"),
        time(row, "critical_tax_ns_per_run"),
    ]
}
