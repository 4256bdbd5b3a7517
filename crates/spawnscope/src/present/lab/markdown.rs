//! The lab's report as Markdown, for issues and documents.

use super::comparison;
use super::grid::grid;
use super::values::{
    caveats, cell_text, columns, describe_fit, describe_machine, format_estimate, legend, noise, table_legend,
};
use crate::lab::compare::Comparison;
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Outcome, Report, Unit};
use crate::present::text::escape;

/// Maximum x values per table.
const MAX_X_VALUES: usize = 9;

/// Renders the whole report.
#[must_use]
pub fn markdown(report: &Report, comparison: Option<&Comparison>) -> String {
    let mut lines = vec![describe_machine(&report.machine), String::new()];
    for caveat in caveats(report) {
        lines.extend([format!("**{}**", cell(&caveat)), String::new()]);
    }
    for outcome in &report.experiments {
        lines.extend([format!("## {}", outcome.name), String::new(), cell(&outcome.title), String::new()]);
        if outcome.rows.is_empty() {
            lines.extend(["**No reliable results.**".to_owned(), String::new()]);
        } else if !write_series(outcome, &mut lines) {
            write_cases(outcome, &mut lines);
            write_legend(&table_legend(outcome, &columns(outcome)), &mut lines);
        }
        let sentences = outcome.fits.iter().map(describe_fit).chain(outcome.notes.iter().cloned());
        lines.extend(sentences.map(|text| format!("- {}", cell(&text))));
        lines.push(String::new());
    }
    if let Some(comparison) = comparison {
        write_comparison(comparison, &mut lines);
    }
    lines.join("\n")
}

/// Writes a table with one line per case.
fn write_cases(outcome: &Outcome, lines: &mut Vec<String>) {
    let columns = columns(outcome);
    let titles = columns.iter().map(|column| column.title.clone()).collect();
    let is_text: Vec<bool> = columns.iter().map(|column| column.unit == Unit::Text).collect();
    let rows = outcome.rows.iter().map(|row| {
        let cells = columns.iter().map(|column| {
            let noise = row.get(&column.name).estimate().map(noise).unwrap_or_default();
            format!("{} {noise}", cell_text(row, column)).trim_end().to_owned()
        });
        cells.collect()
    });
    write_table(titles, rows, &is_text, lines);
}

/// Writes a table with one line per series, if there is an x axis. Returns whether there is one.
fn write_series(outcome: &Outcome, lines: &mut Vec<String>) -> bool {
    let Some(grid) = grid(outcome, MAX_X_VALUES) else {
        return false;
    };
    let titles: Vec<String> = [vec![grid.corner], grid.x].concat();
    let is_text: Vec<bool> = (0..titles.len()).map(|at| at == 0).collect();
    let estimates = grid.series.iter().flat_map(|(_, cells)| cells.iter().copied().flatten());
    let shown_estimates: Vec<&Estimate> = estimates.collect();
    let rows = grid.series.into_iter().map(|(name, cells)| {
        let shown = cells.into_iter().map(|cell| {
            cell.map_or(String::new(), |estimate| {
                let text = format!("{} {}", format_estimate(estimate, grid.unit), noise(estimate));
                text.trim_end().to_owned()
            })
        });
        std::iter::once(name).chain(shown).collect()
    });
    write_table(titles, rows, &is_text, lines);
    write_legend(&legend(shown_estimates), lines);
    if let Some(left_out) = grid.left_out {
        lines.push(format!("- {}", cell(&left_out)));
    }
    true
}

/// Writes the explanations of the marks in a table.
fn write_legend(legend: &[String], lines: &mut Vec<String>) {
    let quoted = legend.iter().map(|text| format!("- `{}`{}", &text[..1], &text[1..]));
    lines.extend(quoted);
}

fn write_comparison(comparison: &Comparison, lines: &mut Vec<String>) {
    lines.extend([format!("## {}", comparison::HEADING), String::new()]);
    if !comparison.conditions.is_empty() {
        lines.extend([format!("**{}**", cell(&comparison::describe_differing_conditions(comparison))), String::new()]);
    }
    let shifts = comparison::common_shifts(comparison);
    if !shifts.is_empty() {
        lines.extend([comparison::COMMON_SHIFT_TEXT.to_owned(), String::new()]);
        lines.extend(shifts.iter().map(|(experiment, what)| format!("- {}: {}", cell(experiment), cell(what))));
        lines.push(String::new());
    }
    let standouts = comparison::standout_changes(comparison);
    if !standouts.is_empty() {
        lines.extend([comparison::OTHER_CHANGES_TEXT.to_owned(), String::new()]);
        let titles = ["new / old", "interval", "old and new", "case"].map(str::to_owned).to_vec();
        let rows = standouts.into_iter().map(|change| comparison::cells(change).to_vec());
        write_table(titles, rows, &[false, false, false, true], lines);
    }
    for text in std::iter::once(comparison::summarize_others(comparison)).chain(comparison::describe_gone(comparison)) {
        lines.extend([cell(&text), String::new()]);
    }
}

fn write_table(
    titles: Vec<String>,
    rows: impl Iterator<Item = Vec<String>>,
    is_text: &[bool],
    lines: &mut Vec<String>,
) {
    lines.push(table_row(titles));
    let rules: Vec<&str> = is_text.iter().map(|is| if *is { "---" } else { "---:" }).collect();
    lines.push(format!("|{}|", rules.join("|")));
    lines.extend(rows.map(table_row));
    lines.push(String::new());
}

fn table_row(cells: Vec<String>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|text| cell(&text)).collect();
    format!("| {} |", cells.join(" | "))
}

/// Escapes text so that it does not end a cell.
fn cell(text: &str) -> String {
    escape(text.as_bytes()).replace('|', "\\|")
}
