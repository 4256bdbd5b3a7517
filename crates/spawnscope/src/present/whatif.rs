//! The prediction of `spawnscope whatif`: for the terminal, and as JSON.

use serde_json::{Map, Value, json};

use super::json::{insert_text, spent};
use super::page::{Page, plain, styled};
use super::palette::{FINDING, PLAIN, QUIET, TITLE};
use super::{critical, text, units};
use crate::analyze::whatif::Prediction;
use crate::analyze::whatif::outlook::{Changed, Critical, Outlook};
use crate::event::Nanos;

/// Version of the keys.
const SCHEMA_VERSION: u32 = 1;
/// What recording took is not worth a word below this share of the wall.
const LEAST_RECORDING: f64 = 0.005;
/// Programs of the critical path that are shown.
const MOST_PROGRAMS: usize = 8;

/// The prediction as text.
#[must_use]
pub fn render(outlook: &Outlook, width: usize) -> String {
    let mut page = Page::of_width(width);
    let prediction = &outlook.prediction;
    for change in &outlook.changes {
        page.line([styled(TITLE, text::escape(change.text.as_bytes()))]);
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
    page.line([]);
    page.line([plain(format!(
        "  {:<10}{:>10}{}",
        "wall",
        units::time(prediction.wall),
        recorded(prediction)
    ))]);
    page.line([
        plain(format!("  {:<10}", "predicted")),
        styled(TITLE, format!("{:>10}", units::time(prediction.predicted))),
        plain(format!(
            "   {}",
            difference(prediction.unrecorded, prediction.predicted)
        )),
    ]);
    let interval = format!(
        "between {} and {}",
        units::time(prediction.low),
        units::time(prediction.high)
    );
    page.line([plain(format!("  {:<10}{:>10}   ", "", "")), plain(interval)]);
    let error = 100.0 * prediction.replay_error;
    let error = format!("played again unchanged, the wall comes out {error:+.1} % off; the interval holds that");
    page.sentence(2, QUIET, &error);
    if !outlook.critical_after.is_empty() {
        critical_after(&mut page, outlook);
    }
    page.finish()
}

/// What the wall was without being recorded, where that makes a difference to be seen.
fn recorded(prediction: &Prediction) -> String {
    let took = prediction.wall.since(prediction.unrecorded);
    if (took.0 as f64) < LEAST_RECORDING * prediction.wall.0 as f64 {
        return String::new();
    }
    format!("   recorded; about {} without that", units::time(prediction.unrecorded))
}

fn held(change: &Changed) -> String {
    match (change.selected, change.launches) {
        (0, _) => "holds for the whole recording".to_owned(),
        (selected, 0) => format!(
            "selects {}, none of which it would change",
            units::counted(selected, "launch", "launches")
        ),
        (selected, held) if selected == held => format!("changes {}", units::counted(held, "launch", "launches")),
        (selected, held) => format!("changes {} of {} launches", units::count(held), units::count(selected)),
    }
}

fn difference(wall: Nanos, predicted: Nanos) -> String {
    let share = |part: Nanos| units::percent(part, wall);
    if predicted > wall {
        let more = predicted.since(wall);
        return format!("{} longer, {} of the wall", units::time(more), share(more));
    }
    let less = wall.since(predicted);
    format!("{} less, {} of the wall", units::time(less), share(less))
}

fn critical_after(page: &mut Page, outlook: &Outlook) {
    page.heading("The critical path then");
    critical::parts(page, &outlook.where_the_wall_went, outlook.prediction.predicted);
    page.line([]);
    let width = page.width().saturating_sub(28).max(8);
    page.line([styled(
        QUIET,
        format!("  {}{:>13}{:>13}", text::pad_right("program", width), "critical", "tax"),
    )]);
    for program in outlook.critical_after.iter().take(MOST_PROGRAMS) {
        let name = text::pad_right(&text::escape(&program.label), width);
        let figures = format!("{:>13}{:>13}", units::time(program.critical), units::time(program.tax));
        page.line([styled(PLAIN, format!("  {name}{figures}"))]);
    }
}

/// The prediction as a JSON object in several lines, with a newline at its end.
#[must_use]
pub fn json(outlook: &Outlook) -> String {
    let prediction = &outlook.prediction;
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "wall_ns": prediction.wall.0,
        "unrecorded_ns": prediction.unrecorded.0,
        "predicted_ns": prediction.predicted.0,
        "low_ns": prediction.low.0,
        "high_ns": prediction.high.0,
        "replay_error": prediction.replay_error,
        "changes": outlook.changes.iter().map(change_value).collect::<Vec<_>>(),
        "critical_after": outlook.critical_after.iter().map(critical_value).collect::<Vec<_>>(),
        "critical_path": outlook.where_the_wall_went.iter().map(spent).collect::<Vec<_>>(),
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
