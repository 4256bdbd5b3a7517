//! Experiments as SVG plots: lines if there is an x axis, bars for small tables, both with intervals. Published figures are dashed lines. Plots
//! have no title: the page has it.

mod axis;
mod bars;
mod families;
mod legend;
mod lines;
mod series;
mod svg;
mod theme;

use super::values::figure;
use crate::lab::outcome::{Outcome, Unit};

/// Draws an experiment. Returns `None` if there is nothing to draw.
pub(super) fn svg(outcome: &Outcome) -> Option<String> {
    match &outcome.chart {
        Some(chart) => lines::draw(outcome, chart),
        None => bars::draw(outcome),
    }
}

/// Formats a value of an axis, without trailing zeros. Zero has no unit.
fn tick(value: f64, unit: Unit) -> String {
    let text = if value == 0.0 { "0".to_owned() } else { figure(value, unit) };
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::theme::{FONT_SIZE, WIDTH, width_of};
    use super::*;
    use crate::lab::harness::Estimate;
    use crate::lab::outcome::{Row, Scale, Value, key, measure};

    /// Returns an experiment with three sizes. The second value is too noisy to show, and the third is uncertain.
    fn outcome() -> Outcome {
        let columns = vec![key("size", "size", Unit::Count), measure("wall_ns", "wall", Unit::Nanos)];
        let mut outcome = Outcome::new("", columns);
        let rows = [(1, 1e6, 1e4), (2, 2.23e6, 9e9), (3, 3e6, 1e6)].map(|(size, median, half)| {
            let (low, high) = (median - half, median + half);
            let wall = Value::Estimate(Estimate { median, low, high, rounds: 6 });
            let values = [("size", Value::from(size)), ("wall_ns", wall)];
            Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec())
        });
        outcome.rows = rows.to_vec();
        outcome
    }

    #[test]
    fn bars_show_what_tables_show() {
        let drawn = svg(&outcome()).unwrap();
        for (text, is_there) in [(">1.00 ms<", true), (">~3.00 ms<", true), (">-<", true), ("2.23", false)] {
            assert_eq!(drawn.contains(text), is_there, "{text} in\n{drawn}");
        }
        assert!(!drawn.contains("10 s"), "withheld intervals must not stretch the axis:\n{drawn}");
    }

    #[test]
    fn lines_have_no_point_that_tables_withhold() {
        let mut outcome = outcome();
        outcome.draw("size", "wall_ns", &[], [Scale::Linear, Scale::Linear]);
        let drawn = svg(&outcome).unwrap();
        let dots = drawn.matches("class=\"mark").count();
        assert_eq!(dots, 3, "two points, and one of the legend:\n{drawn}");
    }

    /// Returns the texts of a drawing: left, right, baseline, and the text.
    fn texts(drawn: &str) -> Vec<(f64, f64, f64, String)> {
        let texts = drawn.split("<text ").skip(1).map(|element| {
            let (attributes, text) = element.split_once("</text>").unwrap().0.split_once('>').unwrap();
            let width = width_of(text);
            let before = match attributes {
                _ if attributes.contains("\"middle\"") => width / 2.0,
                _ if attributes.contains("\"end\"") => width,
                _ => 0.0,
            };
            let left = number(attributes, "x") - before;
            (left, left + width, number(attributes, "y"), text.to_owned())
        });
        texts.collect()
    }

    fn number(attributes: &str, name: &str) -> f64 {
        let (_, rest) = attributes.split_once(&format!("{name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse().unwrap()
    }

    #[test]
    fn no_text_of_a_stored_run_overlaps_another_or_leaves_the_plot() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benchmarks/runs/2026-11-22-vm/lab.json");
        let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for experiment in report["experiments"].as_array().unwrap() {
            // This experiment no longer exists, and its unit neither.
            if experiment["name"] == "throughput" {
                continue;
            }
            let outcome: Outcome = serde_json::from_value(experiment.clone()).unwrap();
            let texts = texts(&svg(&outcome).unwrap());
            assert!(texts.len() > 5, "{}", outcome.name);
            for (number, (left, right, baseline, text)) in texts.iter().enumerate() {
                let what = format!("{}: {text}", outcome.name);
                assert!(*left >= -0.5 && *right <= WIDTH + 0.5, "{what}");
                let same_line = texts[..number].iter().filter(|other| (other.2 - baseline).abs() < FONT_SIZE);
                for other in same_line {
                    assert!(other.1 <= *left || other.0 >= *right, "{what} and {}", other.3);
                }
            }
        }
    }

    #[test]
    fn labels_of_axes_are_short() {
        let labels = [0.0, 100.0, 1_500_000.0, 1e7, 1e9].map(|value| tick(value, Unit::Nanos));
        assert_eq!(labels, ["0", "100 ns", "1.5 ms", "10 ms", "1 s"]);
    }
}
