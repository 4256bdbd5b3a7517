//! `fleet advice`: the findings of `spawnscope advise`, each summed over all runs.

use spawnscope_data::units;

use super::{columns, count, extent, sites, time};
use crate::answer::{Answer, Row};
use crate::page::{Page, Table};

/// Builds the page that shows an answer.
pub fn page(found: &Answer, totals: &Answer) -> Page {
    let mut sentences = vec![extent(totals)];
    match found.iter().next() {
        None => sentences.push("No run has a finding that is worth fixing.".to_owned()),
        Some(first) => sentences.push(format!(
            "Fix first: {}. This saves {} ({} to {}) over {}. Fix: {}",
            first.text("title").unwrap_or_default(),
            time(first, "saving_ns"),
            time(first, "saving_low_ns"),
            time(first, "saving_high_ns"),
            units::counted(first.count("runs").unwrap_or_default() as u64, "run", "runs"),
            one_line(first.text("fix").unwrap_or_default()),
        )),
    }
    Page {
        title: "Findings over all runs".to_owned(),
        sentences,
        tables: vec![Table {
            columns: columns(&["rule", "line"], &["runs", "launches", "saves", "interval"]),
            rows: found.iter().map(cells).collect(),
        }],
        sections: Vec::new(),
    }
}

fn cells(row: Row<'_>) -> Vec<String> {
    let site = match (row.text("file"), row.count("is_foreign")) {
        (None, _) => "-".to_owned(),
        (_, Some(1)) => format!("{} (generated or third-party code)", sites::name(row)),
        _ => sites::name(row),
    };
    vec![
        row.text("rule").unwrap_or("-").to_owned(),
        site,
        count(row, "runs"),
        count(row, "launches"),
        time(row, "saving_ns"),
        format!("{} to {}", time(row, "saving_low_ns"), time(row, "saving_high_ns")),
    ]
}

/// Joins the lines of a text into one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
