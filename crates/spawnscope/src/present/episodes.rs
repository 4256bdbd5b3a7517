//! Windows and episodes: the title of a report on a window, the section of a full report that lists
//! the busiest episodes, and JSON.

use serde_json::{Map, Value, json};

use super::headline::{argument, process_label};
use super::json_values::{insert_text, nanos};
use super::page::{Column, Columns, Page, QUIET, column, plain, styled};
use super::{text, units};
use crate::analyze::explain::report::Report;
use crate::analyze::model::window::{Episode, WindowTitle};
use crate::event::{Nanos, Pid};

const MAX_EPISODES: usize = 5;
/// Minimum width of the name of a process, in columns.
const NAME_WIDTH: usize = 12;
const NUMBER_WIDTH: usize = 5;
const FIGURES: [Column; 4] =
    [column("start", 11, 4), column("length", 11, 3), column("launches", 10, 1), column("start-up", 11, 2)];

pub(super) fn print_busiest(page: &mut Page, report: &Report, file: Option<&str>) {
    if report.episodes.is_empty() {
        return;
    }
    page.heading("Busiest episodes");
    let shown = &report.episodes[..report.episodes.len().min(MAX_EPISODES)];
    let rows: Vec<Vec<String>> = shown.iter().map(figures).collect();
    let names: Vec<String> = shown.iter().map(|each| process_label(&each.label, each.pid)).collect();
    let columns = Columns::fit(page.width().saturating_sub(NUMBER_WIDTH + NAME_WIDTH), &FIGURES, &rows);
    let width = page.width().saturating_sub(NUMBER_WIDTH - 2);
    let name_width = columns.name_width(width, text::widest(&names, "process"));
    let title = text::pad_right("process", name_width);
    page.line([styled(QUIET, format!("     {title}{}", columns.titles()))]);
    for ((number, name), figures) in (1..).zip(&names).zip(&rows) {
        let name = text::pad_right(name, name_width);
        page.line([plain(format!("  {number}. {name}{}", columns.row(figures)))]);
    }
    let others = report.episodes.len() - shown.len();
    let others = if others > 0 {
        format!("… {}. ", units::counted(others as u64, "more episode", "more episodes"))
    } else {
        String::new()
    };
    page.sentence(2, QUIET, &format!("{others}To explain one:"));
    page.command(2, &format!("spawnscope advise --episode 1{}", argument(file)));
}

fn figures(episode: &Episode) -> Vec<String> {
    vec![
        units::time(episode.span.from),
        units::time(episode.span.to.since(episode.span.from)),
        units::count(episode.launches),
        units::time(episode.tax),
    ]
}

pub(super) fn values(episodes: &[Episode]) -> Vec<Value> {
    let values = (1..).zip(episodes).map(|(number, episode)| {
        let mut object = Map::new();
        object.insert("episode".into(), Value::from(number));
        insert_text(&mut object, "process", &episode.label);
        object.insert("launches".into(), episode.launches.into());
        object.insert("launch_tax_ns".into(), nanos(episode.tax));
        insert_span(&mut object, episode.pid, episode.span.from, episode.span.to);
        Value::Object(object)
    });
    values.collect()
}

pub(super) fn window_value(window: &WindowTitle) -> Value {
    let mut object = Map::new();
    insert_text(&mut object, "process", &window.label);
    insert_span(&mut object, window.pid, window.from, window.to);
    Value::Object(object)
}

fn insert_span(object: &mut Map<String, Value>, pid: Option<Pid>, Nanos(from): Nanos, Nanos(to): Nanos) {
    object.insert("pid".into(), json!(pid.map(|pid| pid.0)));
    object.insert("from_ns".into(), from.into());
    object.insert("to_ns".into(), to.into());
}
