//! The page of `spawnscope diff -o`, which shows the difference between two versions. The template
//! escapes all text from the recordings, and has the complete content: the script only sorts,
//! filters and zooms. Numbers and sentences come from `present/diff`, the style and the
//! Content-Security-Policy from the report's page.

use std::io;

use askama::Template;

use super::frame::{STYLE, policy};
use crate::analyze::compare::diff::Diff;
use crate::analyze::path::flame::Weight;
use crate::event::Nanos;
use crate::present::diff::{DiffTables, tabulate};
use crate::present::flame::{DifferenceBox, difference_boxes};
use crate::present::{text, units};

const DIFFERENCE_STYLE: &str = include_str!("../../../templates/difference.css");
/// The script, built by crates/spawnscope/html.
const SCRIPT: &str = include_str!("bundle/difference.js");
/// Width of the drawing, in units of its viewBox.
const DRAWING_WIDTH: f64 = 1200.0;
/// Height of a row of boxes, in these units.
const ROW_HEIGHT: usize = 20;
/// Width of a character, in these units.
const CHARACTER_WIDTH: f64 = 7.0;
/// Minimum width of a box, in these units. Narrower boxes are omitted.
const MIN_BOX_WIDTH: f64 = 0.3;
/// Maximum number of rows of the drawing. Deeper rows are omitted.
const MAX_ROWS: usize = 200;
const MAX_LABEL_CHARACTERS: usize = 170;
const SHADES: f64 = 4.0;

#[derive(Template)]
#[template(path = "difference.html")]
struct Frame<'f> {
    policy: String,
    version: &'static str,
    style: &'static str,
    difference_style: &'static str,
    script: &'static str,
    found: &'f DiffTables,
    unit: &'static str,
    boxes: Vec<DrawnBox>,
    height: usize,
}

struct DrawnBox {
    class: String,
    x: String,
    y: usize,
    width: String,
    title: String,
    label: String,
    /// The whole label, for the script: it shows more of it after zooming.
    full_label: String,
}

/// Renders the page from the difference and the folded stacks of the runs of both versions.
pub fn difference(diff: &Diff, before: &[String], after: &[String], weight: Weight) -> io::Result<String> {
    let boxes = difference_boxes(before, after);
    let total = boxes.iter().filter(|each| each.depth == 0).map(|each| each.width).sum();
    let boxes: Vec<DrawnBox> = boxes.iter().filter_map(|each| draw_box(each, total, weight)).collect();
    let frame = Frame {
        policy: policy(&[SCRIPT], &[STYLE, DIFFERENCE_STYLE]),
        version: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        difference_style: DIFFERENCE_STYLE,
        script: SCRIPT,
        found: &tabulate(diff),
        unit: if weight == Weight::Count { "launches" } else { "time" },
        height: boxes.iter().map(|each| each.y + ROW_HEIGHT).max().unwrap_or_default(),
        boxes,
    };
    frame.render().map_err(io::Error::other)
}

fn draw_box(each: &DifferenceBox, total: u64, weight: Weight) -> Option<DrawnBox> {
    let scale = DRAWING_WIDTH / total.max(1) as f64;
    let width = each.width as f64 * scale;
    if width < MIN_BOX_WIDTH || each.depth >= MAX_ROWS {
        return None;
    }
    let [before, after] = each.weights;
    let sign = if after > before { "+" } else { "-" };
    let changed =
        if after == before { "same".to_owned() } else { format!("{sign}{}", amount(after.abs_diff(before), weight)) };
    let name = text::escape(each.name.as_bytes());
    let full_label = text::truncate(&format!("{name} {changed}"), MAX_LABEL_CHARACTERS);
    let characters = ((width - 6.0) / CHARACTER_WIDTH).max(0.0) as usize;
    let label = if characters < 3 { String::new() } else { text::truncate(&full_label, characters) };
    Some(DrawnBox {
        class: class(before, after),
        x: format!("{:.2}", each.start as f64 * scale),
        y: each.depth * ROW_HEIGHT,
        width: format!("{width:.2}"),
        title: format!("{name}: {} -> {} ({changed})", amount(before, weight), amount(after, weight)),
        label,
        full_label,
    })
}

fn amount(folded: u64, weight: Weight) -> String {
    match weight {
        Weight::Count => units::count(folded),
        // Folded times are microseconds.
        _ => units::time(Some(Nanos(folded.saturating_mul(1000)))),
    }
}

/// Returns the CSS class for the colour, which shows what part of the larger weight was added or
/// removed.
fn class(before: u64, after: u64) -> String {
    if before == after {
        return "same".to_owned();
    }
    let part = after.abs_diff(before) as f64 / before.max(after) as f64;
    let shade = (part * SHADES).ceil();
    let name = if after > before { "more" } else { "less" };
    format!("{name}-{shade:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_cannot_end_its_element() {
        assert!(!SCRIPT.to_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
    }

    #[test]
    fn the_colour_shows_the_sign_and_the_share() {
        assert_eq!(class(10, 10), "same");
        assert_eq!(class(10, 0), "less-4");
        assert_eq!(class(0, 3), "more-4");
        assert_eq!(class(100, 99), "less-1");
        assert_eq!(class(100, 200), "more-2");
    }
}
