//! Adds notes on results whose noise is larger than the effect that the experiment looks for.
//! `Outcome::compare` adds such notes for comparisons with a base.

use super::harness::Estimate;
use super::outcome::{Outcome, Value, label};

/// If there are more names than this, only their number is shown.
const MAX_NAMES: usize = 5;

impl Outcome {
    /// Adds a note on series whose last point does not differ from the first: `names`, of `count`
    /// series.
    pub(super) fn note_flat(&mut self, names: &[String], count: usize) {
        let Some(chart) = &self.chart else { return };
        let title = self.columns.iter().find(|column| column.name == chart.x);
        let title = title.map_or(chart.x.clone(), |column| column.title.clone());
        self.note_noise(&format!("between the first and last value of {title}"), names, count, "series");
    }

    /// Adds a note for each column, with the cases whose value in it does not differ from that in
    /// the column `base`.
    pub fn note_indistinguishable_columns(&mut self, base: &str, columns: &[&str]) {
        for column in columns {
            let names: Vec<String> = self
                .rows
                .iter()
                .filter(|row| are_indistinguishable(row.get(base), row.get(column)))
                .map(|row| label(self, row))
                .collect();
            let words = |column: &str| column.strip_suffix("_ns").unwrap_or(column).replace('_', " ");
            let which = format!("between {} and {}", words(base), words(column));
            self.note_noise(&which, &names, self.rows.len(), "cases");
        }
    }

    /// Adds a note that the noise hides a difference. `names` are the cases or series (`kind`) in
    /// which it does, out of `count`; `which` describes the difference.
    pub(super) fn note_noise(&mut self, which: &str, names: &[String], count: usize, kind: &str) {
        if !names.is_empty() {
            self.note(format!(
                "the noise is larger than the difference {which}: {}",
                names_or_count(names, count, kind)
            ));
        }
    }
}

/// Returns the names or, if there are too many, their number.
pub(super) fn names_or_count(names: &[String], count: usize, kind: &str) -> String {
    if names.len() > MAX_NAMES { format!("{} of {count} {kind}", names.len()) } else { names.join("; ") }
}

/// Returns whether the last point does not differ from the first.
pub(super) fn is_flat(points: &[(f64, &Estimate)]) -> bool {
    match points {
        [(_, first), .., (_, last)] => is_within_noise(first, last),
        _ => false,
    }
}

fn are_indistinguishable(base: &Value, value: &Value) -> bool {
    match (base.estimate(), value.estimate()) {
        (Some(base), Some(value)) => is_within_noise(base, value),
        _ => false,
    }
}

/// Returns whether the interval of the ratio of the two values contains 1.
pub(super) fn is_within_noise(base: &Estimate, value: &Estimate) -> bool {
    let (low, high) = interval(base, value);
    low <= 1.0 && high >= 1.0
}

/// Returns the interval of the ratio of two estimates. On a logarithmic scale, the squares of
/// independent errors add up.
fn interval(before: &Estimate, after: &Estimate) -> (f64, f64) {
    let half_width = |new: f64, old: f64| new.ln().hypot(old.ln());
    let ratio = after.median / before.median;
    let low = ratio * (-half_width(after.low / after.median, before.high / before.median)).exp();
    let high = ratio * half_width(after.high / after.median, before.low / before.median).exp();
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Row, Unit, key, measure};
    use super::*;

    fn estimate(median: f64) -> Value {
        Value::Estimate(Estimate { median, low: median * 0.9, high: median * 1.1, rounds: 9 })
    }

    #[test]
    fn the_interval_contains_1_if_the_difference_is_within_the_noise() {
        let estimate = |median: f64| Estimate { median, low: median - 5.0, high: median + 5.0, rounds: 10 };
        let (low, high) = interval(&estimate(100.0), &estimate(104.0));
        assert!(low < 1.0 && high > 1.0);
        let (low, high) = interval(&estimate(100.0), &estimate(150.0));
        assert!(low > 1.3 && low < 1.5 && high < 1.7 && high > 1.5, "{low} {high}");
    }

    /// Returns an outcome with these rows, each of which has the columns kind, threads, before and
    /// during.
    fn outcome(rows: &[(&str, u64, f64, f64)]) -> Outcome {
        let columns = vec![
            key("kind", "kind", Unit::Text),
            key("threads", "threads", Unit::Count),
            measure("before_ns", "before", Unit::Nanos),
            measure("during_ns", "during", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("", columns);
        let rows = rows.iter().map(|(kind, threads, before, during)| {
            let values = [
                ("kind", Value::from(*kind)),
                ("threads", Value::from(*threads)),
                ("before_ns", estimate(*before)),
                ("during_ns", estimate(*during)),
            ];
            Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec())
        });
        outcome.rows = rows.collect();
        outcome
    }

    const ROWS: [(&str, u64, f64, f64); 4] =
        [("fork", 0, 100.0, 300.0), ("fork", 8, 200.0, 205.0), ("vfork", 0, 100.0, 300.0), ("vfork", 8, 101.0, 300.0)];

    #[test]
    fn cases_whose_columns_do_not_differ_are_named() {
        let mut found = outcome(&ROWS);
        found.note_indistinguishable_columns("before_ns", &["during_ns"]);
        assert_eq!(found.notes, ["the noise is larger than the difference between before and during: fork, 8 threads"]);
    }

    #[test]
    fn many_names_are_counted() {
        let mut found = outcome(&["a", "b", "c", "d", "e", "f"].map(equal));
        found.rows.extend(outcome(&[("g", 250, 100.0, 300.0)]).rows);
        found.note_indistinguishable_columns("before_ns", &["during_ns"]);
        assert!(found.notes[0].ends_with(": 6 of 7 cases"), "{:?}", found.notes);
    }

    fn equal(kind: &str) -> (&str, u64, f64, f64) {
        (kind, 250, 100.0, 101.0)
    }
}
