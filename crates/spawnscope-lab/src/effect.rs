//! Notes on results whose noise is larger than the effect that the experiment looks for. Comparisons with a base write such notes
//! themselves (`Outcome::compare`).

use super::compare::{interval, label_of, words_of};
use super::harness::Estimate;
use super::outcome::{Outcome, Row, Unit, Value};

/// If there are more names, only their number is shown.
const MAX_NAMES: usize = 5;

impl Outcome {
    /// For a chart without a fit: names the series whose last point does not differ from the first.
    pub fn note_flat_series(&mut self) {
        let series = self.series();
        let flat = series.iter().filter(|(_, points)| is_flat(points));
        let names: Vec<String> = flat.map(|(name, _)| name.clone()).collect();
        let count = series.len();
        self.note_flat(&names, count);
    }

    /// Adds a note on these series, of `count`.
    pub(super) fn note_flat(&mut self, names: &[String], count: usize) {
        let Some(chart) = &self.chart else { return };
        let title = self.columns.iter().find(|column| column.name == chart.x);
        let title = title.map_or(chart.x.clone(), |column| column.title.clone());
        self.note_noise(
            &format!("between the first and last value of {title}"),
            names,
            count,
            "series",
        );
    }

    /// Names the cases whose values in these columns do not differ from those in `base`.
    pub fn note_equal_columns(&mut self, base: &str, columns: &[&str]) {
        for column in columns {
            let is_equal = |row: &&Row| are_equal(row.get(base), row.get(column));
            let names: Vec<String> = self
                .rows
                .iter()
                .filter(is_equal)
                .map(|row| self.short_label(row))
                .collect();
            let which = format!("between {} and {}", words_of(base), words_of(column));
            self.note_noise(&which, &names, self.rows.len(), "cases");
        }
    }

    /// Names the cases that do not differ in this column from the first one with the same text keys, which is the smallest.
    pub fn note_equal_rows(&mut self, column: &str) {
        let words = |row: &Row| {
            let keys = self
                .columns
                .iter()
                .filter(|column| column.is_key && column.unit == Unit::Text);
            keys.map(|key| row.get(&key.name).clone()).collect::<Vec<Value>>()
        };
        let first_of = |row: &Row| self.rows.iter().find(|other| words(other) == words(row));
        let others = self.rows.iter().filter_map(|row| {
            let first = first_of(row).filter(|first| !std::ptr::eq(*first, row))?;
            Some((first, row))
        });
        let others: Vec<(&Row, &Row)> = others.collect();
        let equal = others
            .iter()
            .filter(|(first, row)| are_equal(first.get(column), row.get(column)));
        let names: Vec<String> = equal.map(|(_, row)| self.short_label(row)).collect();
        let count = others.len();
        self.note_noise("from the first case of its kind", &names, count, "cases");
    }

    /// A description of a row by its keys, without numbers that are the same in all rows.
    fn short_label(&self, row: &Row) -> String {
        label_of(
            self.columns.iter().filter(|column| !self.is_the_same_in_all(column)),
            row,
        )
    }

    /// Adds a note that the noise hides a difference in these cases or series, of `count`.
    pub(super) fn note_noise(&mut self, which: &str, names: &[String], count: usize, kind: &str) {
        if !names.is_empty() {
            self.note(format!(
                "the noise is larger than the difference {which}: {}",
                named(names, count, kind)
            ));
        }
    }
}

/// The names; if there are too many, only their number.
pub(super) fn named(names: &[String], count: usize, kind: &str) -> String {
    if names.len() > MAX_NAMES {
        format!("{} of {count} {kind}", names.len())
    } else {
        names.join("; ")
    }
}

/// Whether the last point does not differ from the first.
pub(super) fn is_flat(points: &[(f64, &Estimate)]) -> bool {
    match points {
        [(_, first), .., (_, last)] => is_within_noise(first, last),
        _ => false,
    }
}

fn are_equal(base: &Value, value: &Value) -> bool {
    match (base.estimate(), value.estimate()) {
        (Some(base), Some(value)) => is_within_noise(base, value),
        _ => false,
    }
}

/// Whether the interval of the ratio contains 1.
pub(super) fn is_within_noise(base: &Estimate, value: &Estimate) -> bool {
    let (low, high) = interval(base, value);
    low <= 1.0 && high >= 1.0
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Scale, key, measure};
    use super::*;

    fn estimate(median: f64) -> Value {
        Value::Estimate(Estimate {
            median,
            low: median * 0.9,
            high: median * 1.1,
            rounds: 9,
        })
    }

    /// The columns of each row: kind, threads, before, during.
    fn outcome(rows: &[(&str, u64, f64, f64)]) -> Outcome {
        let columns = vec![
            key("kind", "kind", Unit::Text),
            key("threads", "threads", Unit::Count),
            measure("before_ns", "before", Unit::Nanos),
            measure("during_ns", "during", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("", columns);
        let row = |(kind, threads, before, during): &(&str, u64, f64, f64)| {
            let values = [
                ("kind", Value::from(*kind)),
                ("threads", Value::from(*threads)),
                ("before_ns", estimate(*before)),
                ("during_ns", estimate(*during)),
            ];
            Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec())
        };
        outcome.rows = rows.iter().map(row).collect();
        outcome
    }

    const ROWS: [(&str, u64, f64, f64); 4] = [
        ("fork", 0, 100.0, 300.0),
        ("fork", 8, 200.0, 205.0),
        ("vfork", 0, 100.0, 300.0),
        ("vfork", 8, 101.0, 300.0),
    ];

    #[test]
    fn series_that_end_as_they_began_are_named() {
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
    fn columns_and_rows_that_do_not_differ_are_named() {
        let mut found = outcome(&ROWS);
        found.note_equal_columns("before_ns", &["during_ns"]);
        found.note_equal_rows("before_ns");
        assert_eq!(
            found.notes,
            [
                "the noise is larger than the difference between before and during: fork, 8 threads",
                "the noise is larger than the difference from the first case of its kind: vfork, 8 threads"
            ]
        );
    }
    #[test]
    fn many_names_are_a_number_and_what_all_share_is_in_none() {
        // All have 250 threads.
        let equal = |kind| (kind, 250, 100.0, 101.0);
        let mut found = outcome(&[equal("a"), equal("b"), ("c", 250, 100.0, 300.0)]);
        found.note_equal_columns("before_ns", &["during_ns"]);
        assert!(found.notes[0].ends_with(": a; b"), "{:?}", found.notes);
        let mut found = outcome(&["a", "b", "c", "d", "e", "f"].map(equal));
        found.rows.extend(outcome(&[("g", 250, 100.0, 300.0)]).rows);
        found.note_equal_columns("before_ns", &["during_ns"]);
        assert!(found.notes[0].ends_with(": 6 of 7 cases"), "{:?}", found.notes);
    }
}
