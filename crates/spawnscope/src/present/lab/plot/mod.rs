//! Experiments as SVG plots: lines if there is an x axis, dashed lines for published figures, bars for small tables. All have intervals.

mod axis;
mod bars;
mod lines;
mod theme;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::values::figure;
use crate::lab::outcome::{Outcome, Unit};
use crate::present::text::escape;

type Error = DrawingAreaErrorKind<std::io::Error>;

/// Draws an experiment. Returns `None` if there is nothing to draw.
pub(super) fn svg(outcome: &Outcome) -> Option<String> {
    let drawn = match &outcome.chart {
        Some(chart) => lines::draw(outcome, chart),
        None => bars::draw(outcome),
    };
    Some(theme::dressed(&drawn?, &super::html::escaped(&outcome.title)))
}

/// Draws text from its upper left corner.
fn text_at(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    text: &str,
    at: (i32, i32),
    style: FontStyle,
) -> Result<(), Error> {
    let font = ("sans-serif", theme::TEXT, style).into_font().color(&theme::INK);
    area.draw(&Text::new(escape(text.as_bytes()), at, font))
}

/// Formats a value of an axis, without trailing zeros. Zero has no unit.
fn tick(value: f64, unit: Unit) -> String {
    let text = if value == 0.0 {
        "0".to_owned()
    } else {
        figure(value, unit)
    };
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::harness::Estimate;
    use crate::lab::outcome::{Row, Scale, Value, key, measure};

    /// Three sizes. The second is too noisy to show, and the third is uncertain.
    fn outcome() -> Outcome {
        let columns = vec![
            key("size", "size", Unit::Count),
            measure("wall_ns", "wall", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("", columns);
        let row = |(size, median, half): (u64, f64, f64)| {
            let (low, high) = (median - half, median + half);
            let wall = Value::Estimate(Estimate {
                median,
                low,
                high,
                rounds: 6,
            });
            let values = [("size", Value::from(size)), ("wall_ns", wall)];
            Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec())
        };
        outcome.rows = [(1, 1e6, 1e4), (2, 2.23e6, 9e9), (3, 3e6, 1e6)].map(row).to_vec();
        outcome
    }

    #[test]
    fn bars_show_what_tables_show() {
        let drawn = svg(&outcome()).unwrap();
        for (text, is_there) in [
            ("\n1.00 ms\n", true),
            ("\n~3.00 ms\n", true),
            ("\n-\n", true),
            ("2.23", false),
        ] {
            assert_eq!(drawn.contains(text), is_there, "{text} in\n{drawn}");
        }
        assert!(
            !drawn.contains("10 s"),
            "withheld intervals must not stretch the axis:\n{drawn}"
        );
    }

    #[test]
    fn lines_have_no_point_that_tables_withhold() {
        let mut outcome = outcome();
        outcome.draw("size", "wall_ns", &[], [Scale::Linear, Scale::Linear]);
        let drawn = svg(&outcome).unwrap();
        let dots = drawn.matches("<circle").count();
        assert_eq!(dots, 3, "two points, and one of the legend:\n{drawn}");
        assert!(drawn.contains("1 point not shown: wider than ±100 %"), "{drawn}");
    }

    #[test]
    fn labels_of_axes_are_short() {
        let said = [0.0, 100.0, 1_500_000.0, 1e7, 1e9].map(|value| tick(value, Unit::Nanos));
        assert_eq!(said, ["0", "100 ns", "1.5 ms", "10 ms", "1 s"]);
        assert_eq!(tick(12_000.0, Unit::PerSecond), "12,000");
    }
}
