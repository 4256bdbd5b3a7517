//! A red and blue flame graph of two versions. A box is as wide as the larger of its two weights, so that removed launches remain visible. Red
//! boxes have more weight after, blue boxes less. inferno draws the graph from lines with two numbers: the second is the width, and their
//! difference determines the colour.

use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};

use super::svg::{MICROSECONDS, name_root_box};
use super::weights::stack_weights;
use super::{legend, titles, without_noncharacters};
use crate::analyze::flame::Weight;
use crate::present::text;

/// The background. It is darker than in other flame graphs, because boxes without a change are white.
const BACKGROUND: Color = Color { r: 0xda, g: 0xda, b: 0xd6 };

/// Draws the difference between the folded stacks of the runs of two versions.
///
/// # Errors
/// Errors of inferno, which do not depend on the recording.
pub fn differential(before: &[String], after: &[String], weight: Weight, title: &str) -> io::Result<Vec<u8>> {
    let weights = stack_weights(before, after);
    let lines: Vec<String> = weights.iter().map(|(stack, weights)| inferno_line(stack, *weights)).collect();
    let mut options = Options::default();
    options.title = without_noncharacters(&text::escape(title.as_bytes()));
    options.subtitle =
        Some("width: the larger of before and after; red: more after; blue: less after; white: the same".to_owned());
    let unit = if weight == Weight::Count { "launches" } else { MICROSECONDS };
    unit.clone_into(&mut options.count_name);
    options.name_type = "Box:".to_owned();
    options.bgcolors = Some(BackgroundColor::Flat(BACKGROUND));
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut drawn = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn)?;
    Ok(legend::add(titles::with_units(name_root_box(drawn)), &[]))
}

/// Returns a line for inferno. Its second number is the larger weight; the first number is less by `after - before`.
fn inferno_line(stack: &str, [before, after]: [u64; 2]) -> String {
    let width = before.max(after);
    let first = width + before - after;
    format!("{stack} {first} {width}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_launches_keep_their_width() {
        assert_eq!(inferno_line("a", [100, 0]), "a 200 100");
        assert_eq!(inferno_line("a", [0, 100]), "a 0 100");
        assert_eq!(inferno_line("a", [30, 30]), "a 30 30");
        assert_eq!(inferno_line("a", [40, 100]), "a 40 100");
    }
}
