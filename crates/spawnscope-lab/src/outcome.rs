//! The result of an experiment: columns, rows of keys and estimates, fits, and the chart. These
//! types define the JSON that `bench --json` writes.

use serde::{Serialize, Serializer};

use super::machine::Machine;
use super::measurements::{Estimate, MIN_ROUNDS, Measurements, Value};

/// The name of a value that rows have in addition to their columns: the number of launches per
/// round. It is missing if the amount of work of the case is fixed.
pub const LAUNCHES: &str = "launches";
/// The version of the JSON that `bench --json` writes.
pub const SCHEMA_VERSION: u32 = 2;

#[derive(Clone, Debug, Default, Serialize)]
pub struct BenchReport {
    pub schema_version: u32,
    pub machine: Machine,
    /// Whether the run was quick, with wider intervals and smaller sizes.
    pub quick: bool,
    pub seconds: Option<f64>,
    /// Whether the run was interrupted before all experiments were finished.
    pub interrupted: bool,
    /// The experiments that were not run because of the interruption.
    pub not_run: Vec<String>,
    pub experiments: Vec<Outcome>,
}

impl BenchReport {
    pub fn new(machine: Machine, quick: bool) -> BenchReport {
        BenchReport { schema_version: SCHEMA_VERSION, machine, quick, ..BenchReport::default() }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Outcome {
    pub name: String,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    pub fits: Vec<Fit>,
    pub chart: Option<Chart>,
    /// Notes for the reader, for example on skipped cases, values that cannot be trusted, and
    /// measurements that need root.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns an outcome without rows. `columns` has the keys, then the measurements in the order
    /// in which cases return them.
    pub fn new(title: &str, columns: Vec<Column>) -> Outcome {
        Outcome { title: title.to_owned(), columns, ..Outcome::default() }
    }

    /// Sets the chart, which has a curve for each series: the column `y` over the column `x`.
    pub fn draw(&mut self, x: &str, y: &str, series: &[&str], scale: Scale) {
        self.chart = Some(Chart {
            x: x.to_owned(),
            y: y.to_owned(),
            series: series.iter().map(|&name| name.to_owned()).collect(),
            scale,
        });
    }

    /// Adds a note for the reader, unless it is a duplicate.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a row for each case with results, and a note for each failed case.
    pub fn add(&mut self, measured: &[Measurements]) {
        for case in measured {
            if let Some(failure) = &case.failure {
                self.note(format!("{}: {failure}", case.label()));
                continue;
            }
            if case.rounds.len() < MIN_ROUNDS {
                self.note(format!("ended before {MIN_ROUNDS} rounds: intervals cover less than 95 %"));
            }
            if !case.has_results() {
                continue;
            }
            let keys = self.columns.iter().filter(|column| column.is_key);
            let keys = keys.map(|column| column.name.clone()).zip(case.keys.iter().cloned());
            let measures = self.columns.iter().filter(|column| !column.is_key).enumerate();
            let measures = measures.map(|(index, column)| (column.name.clone(), case.estimate(index).into()));
            let launches = case.launches.map(|count| (LAUNCHES.to_owned(), Value::from(u64::from(count))));
            let row = Row(keys.chain(measures).chain(launches).collect());
            self.rows.push(row);
        }
    }

    /// Adds a column with the ratio of each case to a base, computed round by round; `column` is
    /// the index among the measurements. Adds a note that explains the ratio, and one with the
    /// cases whose noise is larger than their difference from the base.
    pub fn compare(&mut self, title: &str, measured: &[Measurements], base: &Measurements, column: usize) {
        let name = "ratio";
        let compared = self.columns.iter().filter(|column| !column.is_key).nth(column);
        let compared = compared.map_or(String::new(), |column| column.title.clone());
        self.note(format!(
            "{title}: {compared} relative to {}, round by round; its median may differ from the ratio of the medians shown",
            base.label()
        ));
        self.columns.push(measure(name, title, Unit::Ratio));
        let with_results = measured.iter().filter(|case| case.has_results());
        let mut within_noise = Vec::new();
        for (row, case) in self.rows.iter_mut().zip(with_results) {
            let ratio = (base.failure.is_none()).then(|| case.ratio(base, column)).flatten();
            if !std::ptr::eq(case, base) && ratio.as_ref().is_some_and(|ratio| ratio.low <= 1.0 && ratio.high >= 1.0) {
                within_noise.push(case.label());
            }
            row.0.push((name.to_owned(), ratio.into()));
        }
        if !within_noise.is_empty() {
            self.note(format!("within the noise of {}: {}", base.label(), within_noise.join("; ")));
        }
    }

    pub fn series_name(&self, row: &Row) -> String {
        let parts = self.chart.iter().flat_map(|chart| &chart.series);
        let text = parts.filter_map(|name| match row.get(name) {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => {
                let column = self.columns.iter().find(|column| column.name == *name);
                Some(format!("{} {number}", column.map_or("", |column| &column.title)))
            }
            _ => None,
        });
        text.collect::<Vec<_>>().join(", ")
    }

    pub fn series(&self) -> Vec<(String, Vec<(f64, &Estimate)>)> {
        self.chart
            .as_ref()
            .map_or(Vec::new(), |chart| self.points(self.rows.iter().map(|row| row.get(&chart.y).estimate())))
    }

    /// Returns the points of each series, whose y is the row's value among `values`.
    pub(super) fn points<T>(&self, values: impl Iterator<Item = Option<T>>) -> Vec<(String, Vec<(f64, T)>)> {
        let mut series: Vec<(String, Vec<(f64, T)>)> = Vec::new();
        for (row, value) in self.rows.iter().zip(values) {
            let x = self.chart.as_ref().and_then(|chart| row.get(&chart.x).number());
            let Some(point) = x.zip(value) else { continue };
            let name = self.series_name(row);
            match series.iter_mut().find(|(other, _)| *other == name) {
                Some((_, points)) => points.push(point),
                None => series.push((name, vec![point])),
            }
        }
        series
    }
}

/// How an experiment is drawn, and how it is shown in a terminal: one row per series, one column
/// per x.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    pub x: String,
    pub y: String,
    /// The key columns that name a series.
    pub series: Vec<String>,
    pub scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    Linear,
    Logarithmic,
}

/// A straight line through the points of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    pub series: String,
    /// The line's value at x = 0, in nanoseconds.
    pub at_zero_ns: f64,
    /// The slope in nanoseconds per `x_unit`.
    pub slope_ns: f64,
    /// The confidence interval of the slope, estimated from the noise of the points.
    pub slope_interval_ns: [f64; 2],
    /// The unit of the x axis for the slope: `MB` for 1,000,000 bytes, or the unit of the column,
    /// such as `open file`.
    #[serde(rename = "per")]
    pub x_unit: String,
    /// The share of the variance that the line explains; unknown if nothing varies.
    pub r_squared: Option<f64>,
    /// Whether the line explains the points, so that its slope may be used.
    pub holds: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Column {
    pub name: String,
    pub title: String,
    pub unit: Unit,
    /// Whether the column identifies the case, instead of being measured.
    pub is_key: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Text,
    Nanos,
    Bytes,
    Count,
    Ratio,
}

/// A case with its measurements: a value for each column, and the number of launches under
/// [`LAUNCHES`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub Vec<(String, Value)>);

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl Row {
    pub fn get(&self, column: &str) -> &Value {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or(&Value::Unknown, |(_, value)| value)
    }
}

pub fn key(name: &str, title: &str, unit: Unit) -> Column {
    Column { name: name.to_owned(), title: title.to_owned(), unit, is_key: true }
}

pub fn measure(name: &str, title: &str, unit: Unit) -> Column {
    Column { is_key: false, ..key(name, title, unit) }
}

pub fn label(outcome: &Outcome, row: &Row) -> String {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    let words = keys.filter_map(|column| match (row.get(&column.name), column.unit) {
        (Value::Text(text), _) if text.is_empty() => None,
        (Value::Text(text), _) => Some(text.clone()),
        (Value::Number(bytes), Unit::Bytes) => Some(spawnscope_data::units::bytes(*bytes as u64)),
        (Value::Number(number), _) => Some(format!("{number} {}", column.title)),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}
