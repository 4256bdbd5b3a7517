//! The prediction of `spawnscope whatif`, for the terminal and as JSON.

use anstyle::Style;
use serde_json::{Value, json};

use super::headline::{has_visible_overhead, wall_name};
use super::json_values::{spent_value, with_text};
use super::page::{Column, Columns, FINDING, PLAIN, Page, QUIET, TITLE, column, plain, styled};
use super::{critical, text, units, words};
use crate::analyze::predict::whatif::whatif_report::{ChangeEffect, CriticalProgram, WhatIfReport};
use crate::analyze::predict::whatif::{Cause, Prediction};
use crate::event::Nanos;

const SCHEMA_VERSION: u32 = 1;
/// An interval is wide if it extends further than this share of the wall to either side.
const WIDE_SHARE: f64 = 0.06;
const MAX_PROGRAMS: usize = 8;
const TITLE_OF_NAMES: &str = "program";
/// Minimum width of the name of a program, in columns. Columns of figures are dropped to keep this
/// width.
const NAME_WIDTH: usize = 11;
const FIGURES: [Column; 2] = [column("critical", 13, 2), column("start-up", 13, 1)];

pub fn render(whatif_report: &WhatIfReport, width: usize) -> String {
    let mut page = Page::of_width(width);
    print_changes(&mut page, whatif_report);
    page.line([]);
    let prediction = &whatif_report.prediction;
    print_time(&mut page, PLAIN, "wall", prediction.wall, &overhead_note(prediction));
    let interval = format_interval(prediction.low, prediction.high);
    print_time(&mut page, TITLE, "predicted", prediction.predicted, &interval);
    print_saving(&mut page, prediction);
    print_notes(&mut page, whatif_report);
    if !whatif_report.critical_after.is_empty() {
        print_critical_after(&mut page, whatif_report);
    }
    page.finish()
}

fn print_changes(page: &mut Page, whatif_report: &WhatIfReport) {
    for change in &whatif_report.changes {
        page.sentence(0, TITLE, &text::escape(change.text.as_bytes()));
        let style = if change.launches == 0 && change.selected > 0 { FINDING } else { QUIET };
        page.sentence(2, style, &describe_effect(change));
    }
    if let Some((label, count)) = &whatif_report.forks_left {
        let forks = units::counted(*count, "fork remains", "forks remain");
        let (name, selector) = (text::escape(label), text::quote(label));
        let all = format!("{forks} that ran no other program: `--remove {selector}` removes all {name} launches");
        page.sentence(2, QUIET, &all);
    }
}

/// Prints what the intervals include, and what limits the prediction.
fn print_notes(page: &mut Page, whatif_report: &WhatIfReport) {
    let prediction = &whatif_report.prediction;
    let error = units::signed_percent(prediction.replay_error);
    let error = format!(
        "replay error: {error}, included in both intervals; that of `predicted` also includes run-to-run variation"
    );
    page.sentence(2, QUIET, &error);
    if whatif_report.runs > 1 {
        page.sentence(2, QUIET, &format!("the median of {} recordings", whatif_report.runs));
    }
    if let Some(note) = interval_note(whatif_report) {
        page.sentence(2, QUIET, &note);
    }
    if let Some(takeover) = &whatif_report.takeover {
        let [saved, ..] = prediction.saving();
        page.sentence(2, FINDING, &text::escape(takeover.sentence(saved).as_bytes()));
    }
    if let Some([less, more]) = prediction.held_by_others {
        let [less, more] = [less, more].map(units::time);
        let note = format!(
            "programs outside of the recording held CPUs that the command waited for; if they hold all CPUs that they can get, {less} less \
             is saved, and if they hold none that the command needs, {more} more"
        );
        page.sentence(2, QUIET, &note);
    }
    if prediction.unknown.is_some() {
        page.sentence(2, QUIET, &critical::reconstruction_note(&whatif_report.collector));
    }
}

fn print_time(page: &mut Page, style: Style, name: &str, time: Nanos, note: &str) {
    let beginning =
        [plain(format!("  {name:<10}")), styled(style, text::pad_left(&units::time(time), 10)), plain("   ")];
    page.hanging(beginning, PLAIN, note);
}

/// Returns a note on what makes the interval wide, and what would narrow it. `None` if it is
/// narrow.
fn interval_note(whatif_report: &WhatIfReport) -> Option<String> {
    let Prediction { low, high, unrecorded, widest, .. } = &whatif_report.prediction;
    let half = Nanos(high.since(*low).0 / 2);
    if half.0 as f64 <= WIDE_SHARE * unrecorded.0 as f64 {
        return None;
    }
    let (why, what) = match widest {
        Cause::Runs => {
            ("runs of a command differ", "more recordings narrow it (`record --runs 5`, then name all files)")
        }
        Cause::Launches => ("the launches differ", "a longer run, or more recordings, narrow it"),
        Cause::Costs => {
            ("what remains of the launches is not known", "try it on some of them, and compare with `spawnscope diff`")
        }
        Cause::Model => {
            ("the model is uncertain for so large a change", "make the change and compare with `spawnscope diff`")
        }
        Cause::Polling => ("a parent polls", "a parent that waits for the event itself can be predicted"),
        Cause::Replay => ("the replay differs from the recording", "record again on an idle machine"),
        Cause::UnknownWaits => ("what ended some waits is unknown", "record with eBPF (as root)"),
        Cause::HeldCpus => ("programs outside of the recording held CPUs", "record again on an idle machine"),
    };
    let share = units::percent(half, *unrecorded);
    Some(format!("the interval is wide ({share} of the wall time to either side) because {why}: {what}"))
}

fn format_interval(low: Nanos, high: Nanos) -> String {
    format!("between {} and {}", units::time(low), units::time(high))
}

/// Returns a note on the wall without the overhead of recording, if the difference is large enough
/// to mention.
fn overhead_note(prediction: &Prediction) -> String {
    if !has_visible_overhead(prediction.wall, prediction.unrecorded) {
        return String::new();
    }
    format!("about {} without recording overhead", units::time(prediction.unrecorded))
}

fn describe_effect(change: &ChangeEffect) -> String {
    match (change.selected, change.launches) {
        (0, _) => "applies to the whole recording".to_owned(),
        (selected, 0) => format!("selects {}, but changes nothing", units::counted(selected, "launch", "launches")),
        (selected, changed) if selected == changed => {
            format!("changes {}", units::counted(changed, "launch", "launches"))
        }
        (selected, changed) => format!("changes {} of {} launches", units::count(changed), units::count(selected)),
    }
}

/// Prints the saving. It has the same interval as in the advice, which is smaller than that of the
/// predicted wall: walls also vary from run to run.
fn print_saving(page: &mut Page, prediction: &Prediction) {
    let wall = prediction.unrecorded;
    let name = wall_name(prediction.wall, wall);
    let more = prediction.predicted.since(wall);
    if more.0 > 0 {
        let note = format!("{} of {name}", units::percent(more, wall));
        return print_time(page, PLAIN, "added", more, &note);
    }
    let [saved, low, high] = prediction.saving();
    let note = format!("{} of {name}; {}", units::percent(saved, wall), format_interval(low, high));
    print_time(page, PLAIN, "saved", saved, &note);
}

fn print_critical_after(page: &mut Page, whatif_report: &WhatIfReport) {
    page.heading("The critical path with these changes");
    critical::print_parts(page, &whatif_report.where_the_wall_went, whatif_report.prediction.predicted);
    page.line([]);
    let shown = &whatif_report.critical_after[..whatif_report.critical_after.len().min(MAX_PROGRAMS)];
    let rows: Vec<Vec<String>> =
        shown.iter().map(|program| vec![units::time(program.critical), units::time(program.tax)]).collect();
    let columns = Columns::fit(page.width().saturating_sub(2 + NAME_WIDTH), &FIGURES, &rows);
    let names: Vec<String> = shown.iter().map(|program| text::escape(&program.label)).collect();
    let name_width = columns.name_width(page.width(), text::widest(&names, TITLE_OF_NAMES));
    page.table(TITLE_OF_NAMES, &names, name_width, &columns, &rows);
    for note in words::explain_parentheses(shown.iter().map(|program| program.label.as_slice())) {
        page.sentence(2, QUIET, &note);
    }
}

pub fn json(whatif_report: &WhatIfReport) -> Value {
    let prediction = &whatif_report.prediction;
    let [saving, saving_low, saving_high] = prediction.saving();
    json!({
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
        "runs": whatif_report.runs,
        "unknown_waits": prediction.unknown
            .map(|[stay, go]| json!({ "may_stay_ns": stay.0, "may_go_ns": go.0 })),
        "held_by_others": prediction.held_by_others.map(|[less, more]| json!({ "less_ns": less.0, "more_ns": more.0 })),
        "changes": whatif_report.changes.iter().map(change_value).collect::<Vec<_>>(),
        "critical_after": whatif_report.critical_after.iter().map(critical_value).collect::<Vec<_>>(),
        "critical_path": whatif_report.where_the_wall_went.iter().map(spent_value).collect::<Vec<_>>(),
    })
}

fn change_value(change: &ChangeEffect) -> Value {
    json!({ "change": change.text, "launches": change.launches, "selected": change.selected })
}

fn critical_value(program: &CriticalProgram) -> Value {
    let rest = json!({ "critical_ns": program.critical.0, "tax_ns": program.tax.0 });
    with_text("command", &program.label, rest).into()
}
