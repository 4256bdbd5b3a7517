//! The outputs for a recording, as plain text.

use spawnscope::analyze::model::tree_view::TreeOptions;
use spawnscope::analyze::{Causes, Forest, GroupBy, Report, Waits, report, report_on};
use spawnscope::present::{ndjson, table, tree};
use spawnscope::record::reader::{Recording, SliceRow};

use crate::builder::Spans;
use crate::serial::timelines;

/// Returns the usual phases of a launch, with another run.
pub fn running(run: u64) -> Spans {
    Spans { run, ..Spans::USUAL }
}

/// Returns a text without styles.
pub fn plain(styled: &str) -> String {
    anstream::adapter::strip_str(styled).to_string()
}

/// Returns the report by command.
pub fn by_command(recording: &Recording) -> Report {
    report(recording, GroupBy::Command)
}

/// Returns the report, with causes, of a recording with its slices.
pub fn report_with_causes((recording, slices): &(Recording, Vec<SliceRow>), group_by: GroupBy) -> Report {
    let forest = Forest::build(recording);
    let causes = Causes::find(recording, &forest, &timelines(&forest, slices));
    report_on(recording, &forest, causes.as_ref(), group_by)
}

/// Returns the table of a report, at the default width.
pub fn table_of(report: &Report) -> String {
    plain(&table::render(report, &table::Options::default()))
}

/// Returns the complete table of a report.
pub fn whole_table(report: &Report, width: usize) -> String {
    plain(&table::render(report, &table::Options { width, top: None, file: None }))
}

/// Returns the tree, with styles.
pub fn styled_tree(recording: &Recording, width: Option<usize>) -> String {
    let mut text = Vec::new();
    tree::write(&mut text, &Forest::build(recording), TreeOptions::default(), None, width).unwrap();
    String::from_utf8(text).unwrap()
}

/// Returns the launches as JSON lines, without waits.
pub fn launches_as_ndjson(recording: &Recording) -> String {
    let forest = Forest::build(recording);
    let no_waits = Waits::new(&forest, &[]);
    let mut lines = Vec::new();
    ndjson::write(&mut lines, &forest, &no_waits).unwrap();
    String::from_utf8(lines).unwrap()
}
