//! The page of `spawnscope diff -o`, which shows the difference between two versions. The template
//! escapes all text from the recordings, and has the complete content: the script only sorts,
//! filters and zooms. Numbers and sentences come from `present/diff`, the style and the
//! Content-Security-Policy from the report's page. This file chooses the boxes of the flame graph
//! and their colours.

use std::collections::BTreeMap;
use std::io;

use askama::Template;

use super::frame::{STYLE, policy};
use crate::analyze::compare::diff::Diff;
use crate::analyze::path::flame::Weight;
use crate::event::Nanos;
use crate::present::diff::{DiffTables, tabulate};
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

/// The mean weight of each stack, before and after.
type Weights = BTreeMap<String, [u64; 2]>;

/// A box of the flame graph of a difference. Its width is the sum, over the stacks in it, of the
/// larger of the two weights.
#[derive(Debug, PartialEq, Eq)]
struct DifferenceBox {
    name: String,
    depth: usize,
    /// Where the box begins, in the unit of the weights.
    start: u64,
    width: u64,
    weights: [u64; 2],
}

/// Returns the boxes of the folded stacks of the runs of two versions, each after the box below it.
fn difference_boxes(before: &[String], after: &[String]) -> Vec<DifferenceBox> {
    let weights = stack_weights(before, after);
    // Sorted by frames, not by text, so that the stacks in one box are adjacent.
    let stacks: BTreeMap<Vec<&str>, [u64; 2]> =
        weights.iter().map(|(stack, weights)| (stack.split(';').collect(), *weights)).collect();
    let mut boxes: Vec<DifferenceBox> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut start = 0;
    for (frames, weights) in stacks {
        let width = weights[0].max(weights[1]);
        let shared = open.iter().zip(&frames).take_while(|(index, frame)| boxes[**index].name == **frame).count();
        open.truncate(shared);
        for (depth, frame) in frames.iter().enumerate().skip(shared) {
            open.push(boxes.len());
            boxes.push(DifferenceBox { name: (*frame).to_owned(), depth, start, width: 0, weights: [0, 0] });
        }
        for index in &open {
            let open_box = &mut boxes[*index];
            open_box.width += width;
            open_box.weights = [open_box.weights[0] + weights[0], open_box.weights[1] + weights[1]];
        }
        start += width;
    }
    boxes
}

fn stack_weights(before: &[String], after: &[String]) -> Weights {
    let mut weights = Weights::new();
    add_runs(&mut weights, before, 0);
    add_runs(&mut weights, after, 1);
    weights
}

fn add_runs(weights: &mut Weights, runs: &[String], side: usize) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (stack, weight) in runs.iter().flat_map(|run| run.lines()).filter_map(|line| line.rsplit_once(' ')) {
        *sums.entry(stack).or_default() += weight.parse::<u64>().unwrap_or_default();
    }
    for (stack, sum) in sums {
        let mean = (sum as f64 / runs.len() as f64).round() as u64;
        weights.entry(stack.to_owned()).or_default()[side] = mean;
    }
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

    #[test]
    fn stacks_in_one_box_are_adjacent_and_removed_stacks_keep_their_width() {
        let boxes = difference_boxes(&["a;c 2\na b 1\na;b 10".to_owned()], &["a;c 5".to_owned()]);
        let found: Vec<_> =
            boxes.iter().map(|each| (each.name.as_str(), each.depth, each.start, each.width, each.weights)).collect();
        let wanted =
            [("a", 0, 0, 15, [12, 5]), ("b", 1, 0, 10, [10, 0]), ("c", 1, 10, 5, [2, 5]), ("a b", 0, 15, 1, [1, 0])];
        assert_eq!(found, wanted);
    }
}
