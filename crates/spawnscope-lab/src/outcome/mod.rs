//! The result of an experiment: columns, rows of keys and estimates, fits, and the chart. These
//! types define the JSON that `bench --json` writes.

mod chart;
mod rows;

use serde::{Deserialize, Serialize};

pub use self::chart::{Chart, Fit, PublishedCurve, Scale};
pub use self::rows::{Column, Row, Unit, Value, key, label, measure};
use super::harness::{Estimate, MIN_ROUNDS, Measurements};
use super::machine::Machine;

/// The name of a value that rows have in addition to their columns: the number of launches per
/// round. It is missing if the amount of work of the case is fixed.
pub const LAUNCHES: &str = "launches";
/// The version of the JSON that `bench --json` writes.
pub const SCHEMA_VERSION: u32 = 1;

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this format.
    pub schema_version: u32,
    /// The machine that was measured.
    pub machine: Machine,
    /// Whether the run was quick, with wider intervals and smaller sizes.
    pub quick: bool,
    /// The time for each experiment, in seconds.
    pub seconds: Option<f64>,
    /// Whether the run was interrupted before all experiments were finished.
    pub interrupted: bool,
    /// The experiments that were not run because of the interruption.
    pub not_run: Vec<String>,
    /// The results, in the requested order.
    pub experiments: Vec<Outcome>,
}

impl Report {
    /// Returns a report without experiments.
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

/// The result of one experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The name on the command line.
    pub name: String,
    /// The title, which says what was measured.
    pub title: String,
    /// The columns of the rows, in order.
    pub columns: Vec<Column>,
    /// The measured cases.
    pub rows: Vec<Row>,
    /// Straight lines through the points of the chart's series.
    pub fits: Vec<Fit>,
    /// How to draw the rows as curves.
    pub chart: Option<Chart>,
    /// If there is no chart, the columns to draw as bars, one group of bars per row.
    pub bars: Vec<String>,
    /// Notes for the reader, for example on skipped cases, values that cannot be trusted, and
    /// measurements that need root.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns an outcome without rows. `columns` has the keys, then the measurements in the order
    /// in which cases return them.
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
            notes: Vec::new(),
        }
    }

    /// Selects the columns to draw as bars. The default is the first measurement.
    pub fn draw_bars(&mut self, columns: &[&str]) {
        self.bars = columns.iter().map(|&name| name.to_owned()).collect();
    }

    /// Sets the chart, which has a curve for each series: the column `y` over the column `x`.
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

    /// Adds a published curve to the chart.
    pub fn add_published(&mut self, label: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        if let Some(chart) = &mut self.chart {
            chart.published.push(PublishedCurve { label: label.to_owned(), points: points.into_iter().collect() });
        }
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
        let others = self.rows.len().saturating_sub(1);
        self.note_noise(&format!("from {}", base.label()), &within_noise, others, "cases");
    }

    /// Returns the name of the series that a row belongs to.
    #[must_use]
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

    /// Returns the points of each series of the chart, in the order of the rows.
    #[must_use]
    pub fn series(&self) -> Vec<(String, Vec<(f64, &Estimate)>)> {
        let Some(chart) = &self.chart else { return Vec::new() };
        let mut series: Vec<(String, Vec<(f64, &Estimate)>)> = Vec::new();
        for row in &self.rows {
            let (Some(x), Some(y)) = (row.get(&chart.x).number(), row.get(&chart.y).estimate()) else {
                continue;
            };
            let name = self.series_name(row);
            match series.iter_mut().find(|(other, _)| *other == name) {
                Some((_, points)) => points.push((x, y)),
                None => series.push((name, vec![(x, y)])),
            }
        }
        series
    }
}
