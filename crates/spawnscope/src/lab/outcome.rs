//! What an experiment found: columns, rows of keys and estimates, fits, and how it is best drawn. This is the JSON contract
//! of `bench --json`, and what `--compare` reads again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::harness::{Estimate, FEWEST_ROUNDS, Measured};
use super::linearity::Linearity;
use super::machine::Machine;

/// What a row has beside its columns: of how many launches the values of each round are. Not there where a round has a size of
/// its own.
pub const LAUNCHES: &str = "launches";
/// The version of the JSON that `bench --json` writes.
pub const SCHEMA_VERSION: u32 = 1;

/// All of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The version of this format.
    pub schema_version: u32,
    /// Where it was measured.
    pub machine: Machine,
    /// Whether it was told to be quick: wider intervals, smaller sizes.
    pub quick: bool,
    /// The time for each experiment.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Whether it was ended before all was measured.
    pub interrupted: bool,
    /// The experiments that it therefore did not come to.
    #[serde(default)]
    pub not_run: Vec<String>,
    /// In the order they were asked for.
    pub experiments: Vec<Outcome>,
}

impl Report {
    /// One to which experiments are still to come.
    #[must_use]
    pub fn new(machine: Machine, quick: bool) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            machine,
            quick,
            seconds: None,
            interrupted: false,
            not_run: Vec::new(),
            experiments: Vec::new(),
        }
    }
}

/// What one experiment found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The name on the command line.
    pub name: String,
    /// A sentence: what was measured.
    pub title: String,
    /// What rows are made of, in order.
    pub columns: Vec<Column>,
    /// The findings.
    pub rows: Vec<Row>,
    /// Straight lines through them.
    pub fits: Vec<Fit>,
    /// How to draw them.
    pub chart: Option<Chart>,
    /// Without a chart, the columns that are drawn as bars, a group of them a row.
    #[serde(default)]
    pub bars: Vec<String>,
    /// The files of cases that are programs of the machine: equal names need not be the same program elsewhere.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// What a reader must know: what was left out, what is not to be trusted, what root would add.
    pub notes: Vec<String>,
}

/// A column of an experiment's rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The key in JSON and the heading in CSV.
    pub name: String,
    /// The heading for people.
    pub title: String,
    /// What its values are.
    pub unit: Unit,
    /// Whether it says which case a row is, rather than what was measured.
    pub is_key: bool,
    /// Whether its numbers are what others published: without an interval, and of another machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_published: bool,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Words.
    Text,
    /// Nanoseconds.
    Nanos,
    /// Bytes.
    Bytes,
    /// A number of things.
    Count,
    /// A factor.
    Ratio,
    /// Events a second.
    PerSecond,
}

/// A case and what was measured of it: a value for each column, and `LAUNCHES`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub Vec<(String, Value)>);

/// A value in a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A word of a key.
    Text(String),
    /// A number of a key.
    Number(#[serde(serialize_with = "whole_if_it_is")] f64),
    /// Something measured.
    Estimate(Estimate),
    /// Not measured, or not to be trusted.
    Unknown,
}

/// A straight line through the points of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The series, as the chart names it.
    pub series: String,
    /// Nanoseconds at nothing.
    pub at_zero_ns: f64,
    /// Nanoseconds for each 1,000,000 bytes, or for each of what the x axis counts.
    pub slope_ns: f64,
    /// What the noise of its points allows.
    #[serde(default)]
    pub slope_interval_ns: Option<[f64; 2]>,
    /// What the slope is per: `MB`, `file`.
    pub per: String,
    /// Share of the variance that the line explains; unknown when nothing varies.
    pub r_squared: Option<f64>,
    /// Whether it holds.
    #[serde(flatten)]
    pub linearity: Linearity,
}

/// How an experiment is drawn, and laid out on a terminal: a line a series, a column an x.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// The column along the x axis.
    pub x: String,
    /// The column along the y axis.
    pub y: String,
    /// The key columns that name a series.
    pub series: Vec<String>,
    /// The scale of the x axis.
    pub x_scale: Scale,
    /// That of the y axis.
    pub y_scale: Scale,
    /// What others measured elsewhere.
    pub published: Vec<Published>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors.
    Logarithmic,
}

/// A curve from somewhere else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// Whose.
    pub label: String,
    /// In the units of the axes.
    pub points: Vec<(f64, f64)>,
}

/// `16`, not `16.0`.
fn whole_if_it_is<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Row, D::Error> {
        use serde::de::Error;
        let object = serde_json::Map::deserialize(deserializer)?;
        let value = |(name, value)| Ok((name, serde_json::from_value(value).map_err(D::Error::custom)?));
        object.into_iter().map(value).collect::<Result<_, _>>().map(Row)
    }
}

impl Row {
    /// The value in a column.
    #[must_use]
    pub fn get(&self, column: &str) -> &Value {
        let found = self.0.iter().find(|(name, _)| name == column);
        found.map_or(&Value::Unknown, |(_, value)| value)
    }
}

impl Value {
    /// The number in it: of a key, or the median of what was measured.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Estimate(estimate) => Some(estimate.median),
            Value::Text(_) | Value::Unknown => None,
        }
    }

    /// The estimate in it.
    #[must_use]
    pub fn estimate(&self) -> Option<&Estimate> {
        match self {
            Value::Estimate(estimate) => Some(estimate),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number as f64)
    }
}

impl From<Option<Estimate>> for Value {
    fn from(estimate: Option<Estimate>) -> Value {
        estimate.map_or(Value::Unknown, Value::Estimate)
    }
}

/// A key column.
#[must_use]
pub fn key(name: &str, title: &str, unit: Unit) -> Column {
    Column {
        name: name.to_owned(),
        title: title.to_owned(),
        unit,
        is_key: true,
        is_published: false,
    }
}

/// A column of measurements.
#[must_use]
pub fn measure(name: &str, title: &str, unit: Unit) -> Column {
    Column {
        is_key: false,
        ..key(name, title, unit)
    }
}

impl Outcome {
    /// An outcome without rows; `columns` are keys, then measurements in the order in which cases give them.
    #[must_use]
    pub fn new(title: &str, columns: Vec<Column>) -> Outcome {
        let first = columns.iter().find(|column| !column.is_key);
        Outcome {
            bars: first.map(|column| column.name.clone()).into_iter().collect(),
            name: String::new(),
            title: title.to_owned(),
            columns,
            rows: Vec::new(),
            fits: Vec::new(),
            chart: None,
            files: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    /// Has these columns drawn as bars, rather than only the first measurement.
    pub fn draw_bars(&mut self, columns: &[&str]) {
        self.bars = columns.iter().map(|&name| name.to_owned()).collect();
    }

    /// Has it drawn: a line for each series, of the column `y` over the column `x`.
    pub fn draw(&mut self, x: &str, y: &str, series: &[&str], [x_scale, y_scale]: [Scale; 2]) {
        self.chart = Some(Chart {
            x: x.to_owned(),
            y: y.to_owned(),
            series: series.iter().map(|&name| name.to_owned()).collect(),
            x_scale,
            y_scale,
            published: Vec::new(),
        });
    }

    /// Adds a curve from somewhere else to the chart.
    pub fn published(&mut self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        if let Some(chart) = &mut self.chart {
            chart.published.push(Published {
                label: label.to_owned(),
                points: points.into_iter().collect(),
            });
        }
    }

    /// Adds a sentence that a reader must know.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds a row for each case that can be trusted, and a note for each other.
    pub fn add(&mut self, measured: &[Measured]) {
        for case in measured {
            if let Some(failure) = &case.failure {
                self.note(format!("{}: {failure}", case.label()));
                continue;
            }
            if case.rounds.len() < FEWEST_ROUNDS {
                self.note(format!(
                    "ended before {FEWEST_ROUNDS} rounds: intervals are those of fewer, and hold less than 95 %"
                ));
            }
            if !case.is_told() {
                continue;
            }
            let keys = self.columns.iter().filter(|column| column.is_key);
            let keys = keys.map(|column| column.name.clone()).zip(case.keys.iter().cloned());
            let measures = self.columns.iter().filter(|column| !column.is_key).enumerate();
            let measures = measures.map(|(index, column)| (column.name.clone(), case.estimate(index).into()));
            let launches = case
                .launches
                .map(|count| (LAUNCHES.to_owned(), Value::from(u64::from(count))));
            let row = Row(keys.chain(measures).chain(launches).collect());
            self.rows.push(row);
        }
    }

    /// Adds a column that compares each case with a base, round by round: `column` is the position among measurements.
    /// Says what it is, and where the noise is larger than the difference.
    pub fn compare(&mut self, title: &str, measured: &[Measured], base: &Measured, column: usize) {
        let name = "ratio";
        let compared = self.columns.iter().filter(|column| !column.is_key).nth(column);
        let compared = compared.map_or(String::new(), |column| column.title.clone());
        self.note(format!(
            "{title}: {compared} against {}, in each round; its median is not always the quotient of the medians shown",
            base.label()
        ));
        self.columns.push(measure(name, title, Unit::Ratio));
        let told = measured.iter().filter(|case| case.is_told());
        let mut lost = Vec::new();
        for (row, case) in self.rows.iter_mut().zip(told) {
            let ratio = (base.failure.is_none()).then(|| case.ratio(base, column)).flatten();
            if !std::ptr::eq(case, base)
                && ratio
                    .as_ref()
                    .is_some_and(|ratio| ratio.low <= 1.0 && ratio.high >= 1.0)
            {
                lost.push(case.label());
            }
            row.0.push((name.to_owned(), ratio.into()));
        }
        let others = self.rows.len().saturating_sub(1);
        self.tell(&format!("from {}", base.label()), &lost, others, "cases");
    }

    /// Whether a number of the keys tells no case from another.
    #[must_use]
    pub fn is_the_same_in_all(&self, column: &Column) -> bool {
        let value = self.rows.first().map(|row| row.get(&column.name));
        let mut others = self.rows.iter().skip(1).peekable();
        column.is_key
            && column.unit != Unit::Text
            && others.peek().is_some()
            && others.all(|row| Some(row.get(&column.name)) == value)
    }

    /// The name of the series that a row of the chart belongs to.
    #[must_use]
    pub fn series_of(&self, row: &Row) -> String {
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

    /// The points of each series of the chart, in the order in which they were measured.
    #[must_use]
    pub fn series(&self) -> Vec<(String, Vec<(f64, &Estimate)>)> {
        let Some(chart) = &self.chart else { return Vec::new() };
        let mut series: Vec<(String, Vec<(f64, &Estimate)>)> = Vec::new();
        for row in &self.rows {
            let (Some(x), Some(y)) = (row.get(&chart.x).number(), row.get(&chart.y).estimate()) else {
                continue;
            };
            let name = self.series_of(row);
            match series.iter_mut().find(|(other, _)| *other == name) {
                Some((_, points)) => points.push((x, y)),
                None => series.push((name, vec![(x, y)])),
            }
        }
        series
    }
}
