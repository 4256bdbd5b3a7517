//! The page of `spawnscope diff -o`: what the difference of two versions is. Everything from a recording is escaped by the template, which has
//! the whole content: the script only sorts, filters and zooms. Numbers and sentences are those of `present/diff`, the style and the policy
//! those of the report's page.

use std::io;

use askama::Template;

use super::frame::{STYLE, policy};
use crate::analyze::diff::Diff;
use crate::analyze::flame::Weight;
use crate::event::Nanos;
use crate::present::diff::{Tabulated, tabulate};
use crate::present::flame::{DifferenceBox, difference_boxes};
use crate::present::{text, units};

/// Style rules that the report does not have.
const OWN_STYLE: &str = include_str!("../../../templates/difference.css");
/// The script, built by crates/spawnscope/html.
const SCRIPT: &str = include_str!("bundle/difference.js");
/// The drawing, in its own units.
const FULL: f64 = 1200.0;
const ROW: usize = 20;
const CHARACTER: f64 = 7.0;
/// Narrower boxes are left out.
const NARROWEST: f64 = 0.3;
/// Rows of the drawing. Deeper ones are left out.
const MAX_ROWS: usize = 200;
/// Characters of a label.
const MAX_LABEL: usize = 170;
/// Shades of each colour.
const SHADES: f64 = 4.0;

#[derive(Template)]
#[template(path = "difference.html")]
struct Frame<'f> {
    policy: String,
    version: &'static str,
    style: &'static str,
    own_style: &'static str,
    script: &'static str,
    found: &'f Tabulated,
    unit: &'static str,
    boxes: Vec<Drawn>,
    height: usize,
}

/// A box of the flame graph.
struct Drawn {
    class: String,
    x: String,
    y: usize,
    width: String,
    title: String,
    /// The label if the box is wide enough.
    full: String,
    label: String,
}

/// Renders the page from the difference and the folded stacks of the runs of both versions.
///
/// # Errors
/// When the template fails, which does not depend on the recording.
pub fn difference(diff: &Diff, before: &[String], after: &[String], weight: Weight) -> io::Result<String> {
    let boxes = difference_boxes(before, after);
    let whole = boxes.iter().filter(|each| each.depth == 0).map(|each| each.width).sum();
    let boxes: Vec<Drawn> = boxes.iter().filter_map(|each| drawn(each, whole, weight)).collect();
    let frame = Frame {
        policy: policy(&[SCRIPT], &[STYLE, OWN_STYLE]),
        version: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        own_style: OWN_STYLE,
        script: SCRIPT,
        found: &tabulate(diff),
        unit: if weight == Weight::Count { "launches" } else { "time" },
        height: boxes.iter().map(|each| each.y + ROW).max().unwrap_or_default(),
        boxes,
    };
    frame.render().map_err(io::Error::other)
}

fn drawn(each: &DifferenceBox, whole: u64, weight: Weight) -> Option<Drawn> {
    let scale = FULL / whole.max(1) as f64;
    let width = each.width as f64 * scale;
    if width < NARROWEST || each.depth >= MAX_ROWS {
        return None;
    }
    let [before, after] = each.weights;
    let amount = |value: u64| match weight {
        Weight::Count => units::count(value),
        // Folded times are microseconds.
        _ => units::time(Some(Nanos(value.saturating_mul(1000)))),
    };
    let sign = if after > before { "+" } else { "-" };
    let changed = if after == before {
        "same".to_owned()
    } else {
        format!("{sign}{}", amount(after.abs_diff(before)))
    };
    let name = text::escape(each.name.as_bytes());
    let full = text::truncate(&format!("{name} {changed}"), MAX_LABEL);
    let characters = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    let label = if characters < 3 {
        String::new()
    } else {
        text::truncate(&full, characters)
    };
    Some(Drawn {
        class: class(before, after),
        x: format!("{:.2}", each.start as f64 * scale),
        y: each.depth * ROW,
        width: format!("{width:.2}"),
        title: format!("{name}: {} -> {} ({changed})", amount(before), amount(after)),
        full,
        label,
    })
}

/// The colour, by the part of the larger weight that was added or removed.
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
    fn nothing_ends_the_script() {
        assert!(!SCRIPT.to_lowercase().contains("</script") && !SCRIPT.contains("<!--"));
    }

    #[test]
    fn the_colour_shows_the_sign_and_the_part() {
        assert_eq!(class(10, 10), "same");
        assert_eq!(class(10, 0), "less-4");
        assert_eq!(class(0, 3), "more-4");
        assert_eq!(class(100, 99), "less-1");
        assert_eq!(class(100, 200), "more-2");
    }
}
