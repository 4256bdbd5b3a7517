//! The difference as Markdown, for comments on pull requests and job summaries.

use super::{count_cells, figures, rows_by_kind, runs_note, sentence, time_cells, warnings};
use crate::analyze::compare::diff::{Diff, Row};
use crate::present::markdown::{code_cell, row, sentence as prose};
use crate::present::text::escape;

/// Renders the difference. `top` limits the groups of each kind.
pub fn markdown(diff: &Diff, top: Option<usize>) -> String {
    let mut text = format!("**{}**\n\n{}\n\n", prose(&sentence::first_sentence(diff)), prose(&runs_note(diff)));
    for warning in warnings(diff) {
        text.push_str(&format!("> {}\n\n", prose(&warning)));
    }
    text.push_str("| | before | after | change |\n|---|---:|---:|---:|\n");
    let totals = [
        ("wall", time_cells(&diff.wall)),
        ("launches", count_cells(&diff.launches)),
        ("forks without exec", count_cells(&diff.forks_without_exec)),
        ("failed execs", count_cells(&diff.failed_execs)),
        ("critical start-up", time_cells(&diff.critical_tax)),
        ("start-up", time_cells(&diff.times.tax)),
    ];
    for (name, cells) in totals {
        text.push_str(&row(&[&[name.to_owned()], cells.as_slice()].concat()));
    }
    for (heading, rows) in rows_by_kind(diff) {
        let shown = &rows[..rows.len().min(top.unwrap_or(rows.len()))];
        write_groups(&mut text, heading, shown, rows.len() - shown.len());
    }
    text
}

fn write_groups(text: &mut String, heading: &str, rows: &[&Row], omitted: usize) {
    text.push_str(&format!(
        "\n### {heading}\n\n| program | line | launches | critical | failed execs |\n|---|---|---:|---:|---:|\n"
    ));
    for each in rows {
        let line = sentence::line_label(each).map(|line| code_cell(&line)).unwrap_or_else(|| "-".to_owned());
        let cells = [vec![code_cell(&escape(&each.command)), line], figures(each)].concat();
        text.push_str(&row(&cells));
    }
    if omitted > 0 {
        text.push_str(&format!("\n{omitted} more\n"));
    }
}
