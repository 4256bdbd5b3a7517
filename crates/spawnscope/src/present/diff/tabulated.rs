//! The difference as texts and table cells, for the HTML page.

use super::{arguments, figures, name, rows_by_kind, runs_note, sentence, total_rows, unchanged_note, warnings};
use crate::analyze::compare::diff::{Diff, Row};
use crate::present::text;

/// Maximum number of rows of a table. Further rows are only counted.
const MAX_ROWS: usize = 1000;
/// Maximum width of names, arguments and the command, in columns.
const MAX_COLUMNS: usize = 300;

/// Everything that the page shows about the difference, apart from the flame graph.
pub struct DiffTables {
    pub(in crate::present) command: String,
    pub(in crate::present) sentence: String,
    pub(in crate::present) runs: String,
    pub(in crate::present) warnings: Vec<String>,
    pub(in crate::present) totals: Vec<(&'static str, [String; 3])>,
    pub(in crate::present) tables: Vec<TableOfKind>,
    pub(in crate::present) unchanged: String,
}

/// The table of the groups that were added, removed or changed.
pub(in crate::present) struct TableOfKind {
    pub(in crate::present) heading: &'static str,
    pub(in crate::present) rows: Vec<TableRow>,
    pub(in crate::present) omitted: usize,
}

pub(in crate::present) struct TableRow {
    pub(in crate::present) name: String,
    pub(in crate::present) arguments: String,
    /// Each figure, and the number by which it is sorted. The number of an unknown figure is empty.
    pub(in crate::present) figures: Vec<(String, String)>,
}

pub(in crate::present) fn tabulate(diff: &Diff) -> DiffTables {
    DiffTables {
        command: text::command_line(diff.commands[1].iter().map(Vec::as_slice), Some(MAX_COLUMNS)),
        sentence: sentence::first_sentence(diff),
        runs: runs_note(diff),
        warnings: warnings(diff),
        totals: total_rows(diff),
        tables: rows_by_kind(diff).map(|(heading, rows)| table(heading, &rows)).collect(),
        unchanged: unchanged_note(diff),
    }
}

fn table(heading: &'static str, rows: &[&Row]) -> TableOfKind {
    let shown = rows.iter().take(MAX_ROWS).map(|row| table_row(row));
    TableOfKind { heading, rows: shown.collect(), omitted: rows.len().saturating_sub(MAX_ROWS) }
}

fn table_row(row: &Row) -> TableRow {
    TableRow {
        name: text::truncate(&name(row), MAX_COLUMNS),
        arguments: text::truncate(&arguments(row), MAX_COLUMNS),
        figures: figures(row).into_iter().zip(sort_keys(row)).collect(),
    }
}

/// Returns the numbers by which the figures are sorted, in the order of `figures`.
fn sort_keys(row: &Row) -> [String; 3] {
    let critical = row.times.critical.value().map(|change| format!("{change:.0}"));
    [row.count.difference().to_string(), critical.unwrap_or_default(), row.failed_execs.difference().to_string()]
}
