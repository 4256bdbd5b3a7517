//! The lab's report as Markdown, for issues and documents.

use super::values::{noise, sentence, shown, words};
use crate::lab::outcome::{Outcome, Report, Unit};
use crate::present::text::escape;

/// The whole report.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut lines = vec![words(&report.machine), String::new()];
    for outcome in &report.experiments {
        lines.extend([
            format!("## {}", outcome.name),
            String::new(),
            cell(&outcome.title),
            String::new(),
        ]);
        if !outcome.rows.is_empty() {
            table(outcome, &mut lines);
        }
        let sentences = outcome.fits.iter().map(sentence).chain(outcome.notes.iter().cloned());
        lines.extend(sentences.map(|text| format!("- {}", cell(&text))));
        lines.push(String::new());
    }
    lines.join("\n")
}

fn table(outcome: &Outcome, lines: &mut Vec<String>) {
    let titles = outcome.columns.iter().map(|column| cell(&column.title));
    lines.push(format!("| {} |", titles.collect::<Vec<_>>().join(" | ")));
    let rule = |unit| if unit == Unit::Text { "---" } else { "---:" };
    let rules = outcome.columns.iter().map(|column| rule(column.unit));
    lines.push(format!("|{}|", rules.collect::<Vec<_>>().join("|")));
    for row in &outcome.rows {
        let cells = outcome.columns.iter().map(|column| {
            let value = row.get(&column.name);
            let noise = value.estimate().map(|estimate| format!(" {}", noise(estimate)));
            format!("{}{}", cell(&shown(value, column.unit)), noise.unwrap_or_default())
        });
        lines.push(format!("| {} |", cells.collect::<Vec<_>>().join(" | ")));
    }
    lines.push(String::new());
}

/// Text that does not end a cell.
fn cell(text: &str) -> String {
    escape(text.as_bytes()).replace('|', "\\|")
}
