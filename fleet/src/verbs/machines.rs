//! `fleet machines`: what launches cost on each machine, and which machines differ.

use super::{columns, count, extent, nanos, time};
use crate::answer::{Answer, Row};
use crate::page::{Page, Table};

/// The page of the answer.
pub fn page(found: &Answer, totals: &Answer) -> Page {
    let outliers: Vec<Row<'_>> = found.iter().filter(|row| row.count("is_outlier") == Some(1)).collect();
    let mut sentences: Vec<String> = outliers.iter().map(|row| sentence(*row)).collect();
    if found.rows.is_empty() {
        sentences.push("Nothing to compare: no command of a job ran on two machines.".to_owned());
    } else if outliers.is_empty() {
        sentences.push("No machine's launches cost a tenth more or less than those of the others.".to_owned());
    }
    sentences.push(extent(totals));
    let row = |row: Row<'_>| {
        vec![
            host(row).to_owned(),
            count(row, "runs"),
            count(row, "launches"),
            time(row, "launch_ns"),
            ratio(row).unwrap_or_else(|| "-".to_owned()),
            time(row, "scanner_ns"),
            if row.count("is_outlier") == Some(1) {
                "differs"
            } else {
                ""
            }
            .to_owned(),
        ]
    };
    Page {
        title: "Launches by machine".to_owned(),
        sentences,
        tables: vec![Table {
            columns: columns(
                &["machine"],
                &[
                    "runs",
                    "launches",
                    "a launch",
                    "to the others",
                    "scanner waits",
                    "verdict",
                ],
            ),
            rows: found.iter().map(row).collect(),
        }],
    }
}

fn host(row: Row<'_>) -> &str {
    row.text("host").filter(|host| !host.is_empty()).unwrap_or("(unknown)")
}

/// The cost of the same commands in relation to the other machines, with its interval: `1.52 +- 0.04`.
fn ratio(row: Row<'_>) -> Option<String> {
    let ratio = row.number("against_others")?;
    let width = row
        .number("half_width")
        .map(|width| format!(" +- {width:.2}"))
        .unwrap_or_default();
    Some(format!("{ratio:.2}{width}"))
}

fn sentence(row: Row<'_>) -> String {
    let ratio = ratio(row).unwrap_or_default();
    let scanner = match row.number("scanner_ns") {
        Some(waits) if waits > 0.0 => format!(" Its launches waited {} for a scanner.", nanos(Some(waits))),
        _ => String::new(),
    };
    format!(
        "{}: launches cost {ratio} times what the same commands of the same jobs cost on the others ({} each).{scanner} Run `spawnscope doctor` there.",
        host(row),
        time(row, "launch_ns"),
    )
}
