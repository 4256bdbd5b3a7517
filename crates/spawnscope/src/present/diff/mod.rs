//! The difference between recordings of two versions: for the terminal, as Markdown (for comments
//! on pull requests and job summaries), as JSON, and as texts and table cells for the HTML page.
//! `sentence` has the first sentence and formats numbers.
//!
//! In JSON (schema version 1), unknown values are `null`, and times are means over the runs.

mod sentence;

use serde_json::{Map, Value, json};

use self::sentence::time;
pub(super) use self::sentence::{changed_count, changed_time, count, span};
use super::json_values::{insert_or_null, insert_text, with_text};
use super::markdown::{code_cell, row, sentence as prose};
use super::page::{Column, Columns, FINDING, PLAIN, Page, QUIET, TITLE, WARNING, column, plain, styled};
use super::text::{self, escape};
use super::units;
use crate::analyze::compare::diff::{
    ChangeKind, Condition, CountChange, Diff, Row, ScriptLine, Side, TimeChange, Times,
};
use crate::analyze::model::phases::Phase;
use crate::event::Constant;

/// Default number of groups of launches to list of each kind.
pub const DEFAULT_TOP: usize = 10;
/// Minimum width of a name, in columns. Columns of figures are dropped to keep this width.
const NAME_WIDTH: usize = 24;
const TITLE_OF_NAMES: &str = "program and line";
const TOTALS: [Column; 3] = [column("before", 12, 2), column("after", 12, 1), column("change", 20, 3)];
const FIGURES: [Column; 3] = [column("launches", 14, 3), column("critical", 18, 2), column("failed execs", 14, 1)];

/// The kinds that are listed, each with its heading.
const KINDS: [(ChangeKind, &str); 3] =
    [(ChangeKind::Removed, "Removed"), (ChangeKind::Added, "Added"), (ChangeKind::Changed, "Changed")];

fn rows_by_kind(diff: &Diff) -> impl Iterator<Item = (&'static str, Vec<&Row>)> {
    let kinds =
        KINDS.into_iter().map(|(kind, heading)| (heading, diff.rows.iter().filter(move |row| row.kind == kind)));
    kinds.map(|(heading, rows)| (heading, rows.collect::<Vec<_>>())).filter(|(_, rows)| !rows.is_empty())
}

/// Renders the difference as text. `top` limits the groups of each kind.
pub fn render(diff: &Diff, width: usize, top: Option<usize>) -> String {
    let mut page = Page::of_width(width);
    page.sentence(0, TITLE, &sentence::first_sentence(diff));
    page.sentence(2, QUIET, &runs_note(diff));
    for warning in warnings(diff) {
        page.sentence(2, WARNING, &warning);
    }
    page.line([]);
    print_totals(&mut page, diff);
    for (heading, rows) in rows_by_kind(diff) {
        print_groups(&mut page, heading, &rows, top);
    }
    page.line([]);
    page.sentence(2, QUIET, &unchanged_note(diff));
    text::without_commands(&page.finish())
}

fn runs_note(diff: &Diff) -> String {
    let [before, after] = diff.runs;
    match diff.runs {
        [1, 1] => {
            "One run each: counts are exact, times have no interval. Use `record --runs 5` to get intervals.".to_owned()
        }
        [1, _] | [_, 1] => {
            let runs = units::counted(before as u64, "run", "runs");
            format!("{runs} before, {after} after: intervals need several runs on both sides (`record --runs 5`).")
        }
        _ => format!(
            "{before} runs before, {after} after; \u{b1} is half of a 95 % interval. The more groups there are, the larger a change must be to count."
        ),
    }
}

/// Returns sentences on what makes the comparison less certain.
fn warnings(diff: &Diff) -> Vec<String> {
    let mut warnings: Vec<String> = diff.conditions.iter().map(describe_condition).collect();
    for (lost, side) in diff.lost.iter().zip(["Before", "After"]) {
        if *lost > 0 {
            let events = units::counted(*lost, "event was lost", "events were lost");
            warnings.push(format!("{side}: {events}, so counts are lower limits."));
        }
    }
    if diff.commands[0] != diff.commands[1] {
        let [before, after] =
            [0, 1].map(|side| text::command_line(diff.commands[side].iter().map(Vec::as_slice), Some(60)));
        warnings.push(format!("The commands differ: {before} and {after}."));
    }
    if let Some([before, after]) = diff.renamed.as_ref().map(|names| names.each_ref().map(|name| text::escape(name))) {
        warnings.push(format!("Lines of {before} are compared with lines of {after}."));
    }
    warnings
}

fn describe_condition(condition: &Condition) -> String {
    match condition {
        Condition::Cpus(before, after) => {
            format!("CPUs differ: {before} before, {after} after. Times cannot be compared.")
        }
        Condition::Architecture(before, after) => {
            let [before, after] = [before, after].map(|name| text::escape(name.as_bytes()));
            format!("Architectures differ: {before} before, {after} after. Times cannot be compared.")
        }
        Condition::Constant(what, before, after) => format!(
            "The speed of the machine differs: {} took {} before, {} after. This explains part of the change in times.",
            operation(*what),
            span(*before),
            span(*after)
        ),
        Condition::NoLines(side) => {
            format!("{}: no script lines are known, so launches are matched without them.", side_name(*side))
        }
        Condition::Incomplete(side) => {
            format!("{}: a recording is incomplete, so its wall time is unknown.", side_name(*side))
        }
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Before => "Before",
        Side::After => "After",
    }
}

fn operation(constant: Constant) -> String {
    match constant {
        Constant::ForkExit => "a fork and exit".to_owned(),
        Constant::VforkExit => "a vfork and exit".to_owned(),
        Constant::PageCopy => "copying the page tables of 1 MiB in a fork".to_owned(),
        other => format!("`{}`", other.name()),
    }
}

/// Returns the rows of the table of totals: a name, the values before and after, and their
/// difference.
fn total_rows(diff: &Diff) -> Vec<(&'static str, [String; 3])> {
    let mut rows = vec![("wall", time_cells(&diff.wall)), ("launches", count_cells(&diff.launches))];
    for (name, change) in [("forks without exec", &diff.forks_without_exec), ("failed execs", &diff.failed_execs)] {
        if change.before.high > 0 || change.after.high > 0 {
            rows.push((name, count_cells(change)));
        }
    }
    rows.push(("critical start-up", time_cells(&diff.critical_tax)));
    rows.push(("start-up", time_cells(&diff.times.tax)));
    let (run, tax): (Vec<_>, Vec<_>) = diff.times.phases.iter().partition(|(phase, _)| *phase == Phase::Run);
    for (phase, change) in tax.into_iter().chain(run) {
        if change.before.unwrap_or_default() > 0.0 || change.after.unwrap_or_default() > 0.0 {
            rows.push((phase.name(), time_cells(&change)));
        }
    }
    rows
}

fn print_totals(page: &mut Page, diff: &Diff) {
    let rows = total_rows(diff);
    let figures: Vec<Vec<String>> = rows.iter().map(|(_, cells)| cells.to_vec()).collect();
    let name_width = rows.iter().map(|(name, _)| text::width(name) + 2).max().unwrap_or_default();
    let columns = Columns::fit(page.width().saturating_sub(2 + name_width), &TOTALS, &figures);
    page.line([styled(QUIET, format!("  {}{}", " ".repeat(name_width), columns.titles()))]);
    for (position, ((name, _), cells)) in rows.iter().zip(&figures).enumerate() {
        let is_part = Phase::TAX.iter().any(|phase| phase.name() == *name);
        let name = if is_part { format!("  {name}") } else { (*name).to_owned() };
        let style = if position == 0 { TITLE } else { PLAIN };
        page.line([styled(style, format!("  {}{}", text::pad_right(&name, name_width), columns.row(cells)))]);
    }
}

fn count_cells(change: &CountChange) -> [String; 3] {
    [count(change.before), count(change.after), changed_count(change)]
}

fn time_cells(change: &TimeChange) -> [String; 3] {
    [time(change.before), time(change.after), changed_time(change)]
}

fn print_groups(page: &mut Page, heading: &str, rows: &[&Row], top: Option<usize>) {
    page.heading(heading);
    let shown = &rows[..rows.len().min(top.unwrap_or(rows.len()))];
    let figures: Vec<Vec<String>> = shown.iter().map(|row| figures(row)).collect();
    let columns = Columns::fit(page.width().saturating_sub(2 + NAME_WIDTH), &FIGURES, &figures);
    let names: Vec<String> = shown.iter().map(|row| name(row)).collect();
    let name_width = columns.name_width(page.width(), text::widest(&names, TITLE_OF_NAMES));
    let title = text::pad_right(TITLE_OF_NAMES, name_width);
    page.line([styled(QUIET, format!("  {title}{}", columns.titles()))]);
    for ((row, name), figures) in shown.iter().zip(&names).zip(&figures) {
        let style = if row.kind == ChangeKind::Added { FINDING } else { PLAIN };
        let name = text::pad_right(name, name_width);
        page.line([styled(style, format!("  {name}")), plain(columns.row(figures))]);
        let arguments = arguments(row);
        if !arguments.is_empty() {
            page.line([styled(QUIET, format!("    {arguments}"))]);
        }
    }
    let omitted = rows.len() - shown.len();
    if omitted > 0 {
        let omitted =
            units::counted(omitted as u64, "more group (--top 0 lists all)", "more groups (--top 0 lists all)");
        page.sentence(2, QUIET, &omitted);
    }
}

/// Formats the program and the script line, or else the parent: `dirname at unpack.sh:20`.
fn name(row: &Row) -> String {
    let command = text::escape(&row.command);
    match sentence::line_label(row) {
        Some(line) => format!("{command} at {line}"),
        None => format!("{command} by {}", text::escape(&row.parent)),
    }
}

/// Formats the arguments of a group, or how many different ones it has.
fn arguments(row: &Row) -> String {
    match &row.arguments {
        Some(arguments) => text::escape(arguments),
        None => format!("{} different arguments (--unfold separates them)", units::count(row.variants as u64)),
    }
}

fn figures(row: &Row) -> Vec<String> {
    let mut critical = changed_time(&row.times.critical);
    if row.times.critical.is_change() == Some(false) {
        critical = format!("({critical})");
    }
    vec![both_counts(&row.count), critical, both_counts(&row.failed_execs)]
}

fn both_counts(change: &CountChange) -> String {
    if change.before.high == 0 && change.after.high == 0 {
        return String::new();
    }
    format!("{} -> {}", count(change.before), count(change.after))
}

fn unchanged_note(diff: &Diff) -> String {
    let same = diff.rows.iter().filter(|row| row.kind == ChangeKind::Same).count();
    let same = units::counted(same as u64, "group of launches is", "groups of launches are");
    let noise = if diff.runs.iter().all(|runs| *runs > 1) { "; times in parentheses are noise" } else { "" };
    format!("{same} the same{noise}.")
}

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

/// Maximum number of rows of a table. Further rows are only counted.
const MAX_ROWS: usize = 1000;
/// Maximum width of names, arguments and the command, in columns.
const MAX_COLUMNS: usize = 300;

/// Everything that the page shows about the difference, apart from the flame graph.
pub struct DiffTables {
    pub(super) command: String,
    pub(super) sentence: String,
    pub(super) runs: String,
    pub(super) warnings: Vec<String>,
    pub(super) totals: Vec<(&'static str, [String; 3])>,
    pub(super) tables: Vec<TableOfKind>,
    pub(super) unchanged: String,
}

/// The table of the groups that were added, removed or changed.
pub(super) struct TableOfKind {
    pub(super) heading: &'static str,
    pub(super) rows: Vec<TableRow>,
    pub(super) omitted: usize,
}

pub(super) struct TableRow {
    pub(super) name: String,
    pub(super) arguments: String,
    /// Each figure, and the number by which it is sorted. The number of an unknown figure is empty.
    pub(super) figures: Vec<(String, String)>,
}

pub(super) fn tabulate(diff: &Diff) -> DiffTables {
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

const SCHEMA_VERSION: u32 = 1;

pub fn json(diff: &Diff) -> Value {
    let [before, after] = [0, 1].map(|side| {
        let command = text::command_line(diff.commands[side].iter().map(Vec::as_slice), None);
        json!({ "command": command, "runs": diff.runs[side], "lost_events": diff.lost[side] })
    });
    json!({
        "schema_version": SCHEMA_VERSION,
        "summary": sentence::first_sentence(diff),
        "before": before,
        "after": after,
        "warnings": warnings(diff),
        "wall_ns": time_value(&diff.wall),
        "launches": count_value(&diff.launches),
        "forks_without_exec": count_value(&diff.forks_without_exec),
        "failed_execs": count_value(&diff.failed_execs),
        "critical_tax_ns": time_value(&diff.critical_tax),
        "launch_tax_ns": time_value(&diff.times.tax),
        "phases": phases_value(&diff.times),
        "groups": diff.rows.iter().map(row_value).collect::<Vec<_>>(),
    })
}

fn phases_value(times: &Times) -> Map<String, Value> {
    let phases = times.phases.iter();
    phases.map(|(phase, change)| (phase.name().to_owned(), time_value(change))).collect()
}

fn count_value(change: &CountChange) -> Value {
    let [before, after] = [change.before, change.after]
        .map(|count| json!({ "low": count.low, "median": count.median, "high": count.high }));
    json!({
        "before": before,
        "after": after,
        "difference": change.difference(),
        "is_change": change.is_change(),
    })
}

fn time_value(change: &TimeChange) -> Value {
    json!({
        "before": rounded(change.before),
        "after": rounded(change.after),
        "difference": rounded(change.value()),
        "low": rounded(change.difference.map(|difference| difference.low)),
        "high": rounded(change.difference.map(|difference| difference.high)),
        "is_change": change.is_change(),
    })
}

fn rounded(value: Option<f64>) -> Option<i64> {
    value.map(|value| value.round() as i64)
}

fn row_value(row: &Row) -> Value {
    let kind = match row.kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Changed => "changed",
        ChangeKind::Same => "same",
    };
    let mut object = Map::new();
    object.insert("kind".into(), kind.into());
    insert_text(&mut object, "command", &row.command);
    insert_or_null(&mut object, "arguments", row.arguments.as_deref());
    object.insert("variants".into(), row.variants.into());
    insert_text(&mut object, "parent", &row.parent);
    object.insert("line_before".into(), row.line_before.as_ref().map(script_line_value).into());
    object.insert("line_after".into(), row.line_after.as_ref().map(script_line_value).into());
    object.insert("launches".into(), count_value(&row.count));
    object.insert("failed_execs".into(), count_value(&row.failed_execs));
    object.insert("critical_ns".into(), time_value(&row.times.critical));
    object.insert("tax_ns".into(), time_value(&row.times.tax));
    object.insert("phases".into(), phases_value(&row.times).into());
    Value::Object(object)
}

fn script_line_value(line: &ScriptLine) -> Value {
    let function = line.function.as_deref().map(String::from_utf8_lossy);
    let rest = json!({ "line": line.line, "function": function });
    with_text("file", line.path.0.as_deref().unwrap_or(&line.file), rest).into()
}
