//! Adds notes on results whose noise is larger than the effect that the experiment looks for. `Outcome::compare` adds such notes for
//! comparisons with a base.

use super::compare::{column_words, interval, label};
use super::harness::Estimate;
use super::outcome::{Outcome, Value};

/// If there are more names than this, only their number is shown.
const MAX_NAMES: usize = 5;

impl Outcome {
    /// Adds a note with the series whose last point does not differ from the first. For charts without a fit.
    pub fn note_flat_series(&mut self) {
        let series = self.series();
        let flat = series.iter().filter(|(_, points)| is_flat(points));
        let names: Vec<String> = flat.map(|(name, _)| name.clone()).collect();
        let count = series.len();
        self.note_flat(&names, count);
    }

    /// Adds a note on series whose last point does not differ from the first: `names`, of `count` series.
    pub(super) fn note_flat(&mut self, names: &[String], count: usize) {
        let Some(chart) = &self.chart else { return };
        let title = self.columns.iter().find(|column| column.name == chart.x);
        let title = title.map_or(chart.x.clone(), |column| column.title.clone());
        self.note_noise(&format!("between the first and last value of {title}"), names, count, "series");
    }

    /// Adds a note for each column, with the cases whose value in it does not differ from that in the column `base`.
    pub fn note_indistinguishable_columns(&mut self, base: &str, columns: &[&str]) {
        for column in columns {
            let names: Vec<String> = self
                .rows
                .iter()
                .filter(|row| are_indistinguishable(row.get(base), row.get(column)))
                .map(|row| label(self, row))
                .collect();
            let which = format!("between {} and {}", column_words(base), column_words(column));
            self.note_noise(&which, &names, self.rows.len(), "cases");
        }
    }

    /// Adds a note that the noise hides a difference. `names` are the cases or series (`kind`) in which it does, out of `count`; `which`
    /// describes the difference.
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

#[cfg(test)]
mod tests {
    use super::super::outcome::{Row, Scale, Unit, key, measure};
    use super::*;

    fn estimate(median: f64) -> Value {
        Value::Estimate(Estimate { median, low: median * 0.9, high: median * 1.1, rounds: 9 })
    }

    /// Returns an outcome with these rows, each of which has the columns kind, threads, before and during.
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
    fn series_whose_ends_do_not_differ_are_named() {
        let mut found = outcome(&ROWS);
        found.note_flat_series();
        assert_eq!(found.notes, [""; 0], "no chart");
        found.draw("threads", "before_ns", &["kind"], [Scale::Linear, Scale::Linear]);
        found.note_flat_series();
        assert_eq!(
            found.notes,
            ["the noise is larger than the difference between the first and last value of threads: vfork"]
        );
    }

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
