//! The prediction of `spawnscope whatif`, for the terminal and as JSON.

use anstyle::Style;
use serde_json::{Map, Value, json};

use super::columns::{Column, Columns};
use super::json::{insert_text, spent};
use super::page::{Page, plain, styled};
use super::palette::{FINDING, PLAIN, QUIET, TITLE};
use super::{critical, text, units};
use crate::analyze::whatif::Prediction;
use crate::analyze::whatif::whatif_report::{Changed, Critical, WhatIfReport};
use crate::event::Nanos;

/// Version of the JSON keys.
const SCHEMA_VERSION: u32 = 1;
/// The overhead of recording is not mentioned below this share of the wall.
const MIN_RECORDING: f64 = 0.005;
/// Number of programs on the critical path that are listed.
const MAX_PROGRAMS: usize = 8;
const TITLE_OF_NAMES: &str = "program";
/// Columns that the name of a program keeps; figures are dropped before it gets narrower.
const NAME_WIDTH: usize = 11;
/// Figures of programs on the critical path.
const FIGURES: [Column; 2] = [
    Column {
        title: "critical",
        width: 13,
        priority: 2,
    },
    Column {
        title: "tax",
        width: 13,
        priority: 1,
    },
];

/// Renders the prediction as text.
#[must_use]
pub fn render(whatif_report: &WhatIfReport, width: usize) -> String {
    let mut page = Page::of_width(width);
    let prediction = &whatif_report.prediction;
    for change in &whatif_report.changes {
        page.sentence(0, TITLE, &text::escape(change.text.as_bytes()));
        page.sentence(
            2,
            if change.launches == 0 && change.selected > 0 {
                FINDING
            } else {
                QUIET
            },
            &held(change),
        );
    }
    if let Some((label, count)) = &whatif_report.forks_left {
        let forks = units::counted(*count, "fork remains", "forks remain");
        let (name, selector) = (text::escape(label), text::quote(label));
        let all = format!("{forks} that ran no other program: `--remove {selector}` removes all {name} launches");
        page.sentence(2, QUIET, &all);
    }
    page.line([]);
    figure(&mut page, PLAIN, "wall", prediction.wall, &recorded(prediction));
    let interval = between(prediction.low, prediction.high);
    figure(&mut page, TITLE, "predicted", prediction.predicted, &interval);
    difference(&mut page, prediction);
    let error = units::signed_percent(prediction.replay_error);
    let error = format!(
        "replay error: {error}; both intervals include it; the interval of `predicted` also includes run-to-run variation"
    );
    page.sentence(2, QUIET, &error);
    if prediction.unknown.is_some() {
        page.sentence(2, QUIET, &critical::reconstruction_note(&whatif_report.collector));
    }
    if !whatif_report.critical_after.is_empty() {
        critical_after(&mut page, whatif_report);
    }
    page.finish()
}

fn figure(page: &mut Page, style: Style, name: &str, time: Nanos, note: &str) {
    let beginning = [
        plain(format!("  {name:<10}")),
        styled(style, text::pad_left(&units::time(time), 10)),
        plain("   "),
    ];
    page.hanging(beginning, PLAIN, note);
}

fn between(least: Nanos, most: Nanos) -> String {
    format!("between {} and {}", units::time(least), units::time(most))
}

/// Describes the wall without the overhead of recording, if the difference is visible.
fn recorded(prediction: &Prediction) -> String {
    if !took_time(prediction.wall, prediction.unrecorded) {
        return String::new();
    }
    format!(
        "about {} without recording overhead",
        units::time(prediction.unrecorded)
    )
}

/// Whether the overhead of recording is visible.
pub(super) fn took_time(wall: Nanos, unrecorded: Nanos) -> bool {
    wall.since(unrecorded).0 as f64 >= MIN_RECORDING * wall.0 as f64
}

/// Names the wall that savings are a share of: the wall without recording.
pub(super) fn wall_name(wall: Nanos, unrecorded: Nanos) -> &'static str {
    if took_time(wall, unrecorded) {
        "the wall without recording overhead"
    } else {
        "the wall"
    }
}

fn held(change: &Changed) -> String {
    match (change.selected, change.launches) {
        (0, _) => "applies to the whole recording".to_owned(),
        (selected, 0) => format!(
            "selects {}, but changes nothing",
            units::counted(selected, "launch", "launches")
        ),
        (selected, held) if selected == held => format!("changes {}", units::counted(held, "launch", "launches")),
        (selected, held) => format!("changes {} of {} launches", units::count(held), units::count(selected)),
    }
}

/// Prints the saving. It is known better than the wall, which also drifts, so it has the interval that the advice prints.
fn difference(page: &mut Page, prediction: &Prediction) {
    let wall = prediction.unrecorded;
    let name = wall_name(prediction.wall, wall);
    let more = prediction.predicted.since(wall);
    if more.0 > 0 {
        let note = format!("longer, {} of {name}", units::percent(more, wall));
        return figure(page, PLAIN, "added", more, &note);
    }
    let [saved, least, most] = prediction.saving();
    let note = format!("{} of {name}; {}", units::percent(saved, wall), between(least, most));
    figure(page, PLAIN, "saved", saved, &note);
}

fn critical_after(page: &mut Page, whatif_report: &WhatIfReport) {
    page.heading("The critical path with these changes");
    critical::print_parts(
        page,
        &whatif_report.where_the_wall_went,
        whatif_report.prediction.predicted,
    );
    page.line([]);
    let shown = &whatif_report.critical_after[..whatif_report.critical_after.len().min(MAX_PROGRAMS)];
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|program| vec![units::time(program.critical), units::time(program.tax)])
        .collect();
    let columns = Columns::fit(page.width().saturating_sub(2 + NAME_WIDTH), &FIGURES, &rows);
    let names: Vec<String> = shown.iter().map(|program| text::escape(&program.label)).collect();
    let name_width = columns.name_width(page.width(), text::widest(&names, TITLE_OF_NAMES));
    let title = text::pad_right(TITLE_OF_NAMES, name_width);
    page.line([styled(QUIET, format!("  {title}{}", columns.titles()))]);
    for (name, figures) in names.iter().zip(&rows) {
        let name = text::pad_right(name, name_width);
        page.line([plain(format!("  {name}{}", columns.row(figures)))]);
    }
}

/// Renders the prediction as a multi-line JSON object that ends with a newline.
#[must_use]
pub fn json(whatif_report: &WhatIfReport) -> String {
    let prediction = &whatif_report.prediction;
    let [saving, saving_low, saving_high] = prediction.saving();
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "collector": whatif_report.collector,
        "wall_ns": prediction.wall.0,
        "unrecorded_ns": prediction.unrecorded.0,
        "predicted_ns": prediction.predicted.0,
        "low_ns": prediction.low.0,
        "high_ns": prediction.high.0,
        "saving_ns": saving.0,
        "saving_low_ns": saving_low.0,
        "saving_high_ns": saving_high.0,
        "replay_error": prediction.replay_error,
        "unknown_waits": prediction.unknown
            .map(|[stay, go]| json!({ "may_stay_ns": stay.0, "may_go_ns": go.0 })),
        "changes": whatif_report.changes.iter().map(change_value).collect::<Vec<_>>(),
        "critical_after": whatif_report.critical_after.iter().map(critical_value).collect::<Vec<_>>(),
        "critical_path": whatif_report.where_the_wall_went.iter().map(spent).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn change_value(change: &Changed) -> Value {
    json!({ "change": change.text, "launches": change.launches, "selected": change.selected })
}

fn critical_value(program: &Critical) -> Value {
    let mut object = Map::new();
    insert_text(&mut object, "command", &program.label);
    object.insert("critical_ns".into(), program.critical.0.into());
    object.insert("tax_ns".into(), program.tax.0.into());
    Value::Object(object)
}
