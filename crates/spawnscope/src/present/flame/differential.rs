//! A red and blue flame graph of two versions: a box is as wide as its larger weight, so that what went is still seen; red has more weight
//! after, blue less. inferno draws it from lines with two numbers, of which the second is the width, and their difference is the colour.

use std::collections::BTreeMap;
use std::io;

use inferno::flamegraph::color::{BackgroundColor, Color};
use inferno::flamegraph::{Options, TextTruncateDirection, from_lines};

use super::svg::{MICROSECONDS, with_the_whole_named};
use super::{legend, titles, without_noncharacters};
use crate::analyze::flame::Weight;
use crate::present::text;

/// Darker than that of other flame graphs: boxes that are the same are white.
const BACKGROUND: Color = Color {
    r: 0xda,
    g: 0xda,
    b: 0xd6,
};

/// The mean weight of each stack, before and after.
type Weights = BTreeMap<String, [u64; 2]>;

/// Draws the difference between the folded stacks of the runs of two versions.
///
/// # Errors
/// Errors of inferno, which do not depend on the recording.
pub fn differential(before: &[String], after: &[String], weight: Weight, title: &str) -> io::Result<Vec<u8>> {
    let mut weights = Weights::new();
    add(&mut weights, before, 0);
    add(&mut weights, after, 1);
    let lines: Vec<String> = weights.iter().map(|(stack, weights)| line(stack, *weights)).collect();
    let mut options = Options::default();
    options.title = without_noncharacters(&text::escape(title.as_bytes()));
    options.subtitle =
        Some("width: the larger of before and after; red: more after; blue: less after; white: the same".to_owned());
    let unit = if weight == Weight::Count {
        "launches"
    } else {
        MICROSECONDS
    };
    unit.clone_into(&mut options.count_name);
    options.name_type = "Box:".to_owned();
    options.bgcolors = Some(BackgroundColor::Flat(BACKGROUND));
    options.text_truncate_direction = TextTruncateDirection::Right;
    let mut drawn = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn)?;
    Ok(legend::add(titles::with_units(with_the_whole_named(drawn)), &[]))
}

/// Adds the mean weights of the runs of one side.
fn add(weights: &mut Weights, runs: &[String], side: usize) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (stack, weight) in runs
        .iter()
        .flat_map(|run| run.lines())
        .filter_map(|line| line.rsplit_once(' '))
    {
        *sums.entry(stack).or_default() += weight.parse::<u64>().unwrap_or_default();
    }
    for (stack, sum) in sums {
        let mean = (sum as f64 / runs.len() as f64).round() as u64;
        weights.entry(stack.to_owned()).or_default()[side] = mean;
    }
}

/// Returns a line whose second number is the larger weight, and whose numbers differ as the weights do.
fn line(stack: &str, [before, after]: [u64; 2]) -> String {
    let width = before.max(after);
    let first = width + before - after;
    format!("{stack} {first} {width}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_keeps_its_width() {
        assert_eq!(line("a", [100, 0]), "a 200 100");
        assert_eq!(line("a", [0, 100]), "a 0 100");
        assert_eq!(line("a", [30, 30]), "a 30 30");
        assert_eq!(line("a", [40, 100]), "a 40 100");
    }

    #[test]
    fn runs_are_averaged() {
        let mut weights = Weights::new();
        add(&mut weights, &["a;b 10\na 2".to_owned(), "a;b 20".to_owned()], 1);
        assert_eq!(weights["a;b"], [0, 15]);
        assert_eq!(weights["a"], [0, 1]);
    }
}
