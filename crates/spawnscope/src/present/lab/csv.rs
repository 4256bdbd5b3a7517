//! The lab's report as CSV. It has one line per measurement, so that all experiments share the same columns. Each key has its own column,
//! in raw units. A linear fit is a measurement of its series; notes also have lines.

use super::comparison::describe_gone;
use super::values::{caveats, describe_fit};
use crate::lab::compare::{Change, Comparison, label};
use crate::lab::outcome::{Fit, Outcome, Report, Row, Value};

/// The columns before those of the keys.
const COLUMNS_BEFORE_KEYS: [&str; 2] = ["experiment", "case"];
/// The columns after those of the keys.
const COLUMNS_AFTER_KEYS: [&str; 6] = ["measure", "unit", "median", "low", "high", "rounds"];
/// Additional columns of a comparison.
const COMPARISON_COLUMNS: [&str; 5] = ["old", "new_to_old", "new_to_old_low", "new_to_old_high", "stands_out"];
/// The last column.
const NOTE_COLUMN: &str = "note";

/// Writes the whole report.
///
/// # Errors
/// Does not happen: only memory is written.
pub fn csv(report: &Report, comparison: Option<&Comparison>) -> Result<Vec<u8>, csv::Error> {
    let mut lines = CsvLines { writer: csv::Writer::from_writer(Vec::new()), keys: keys(report), comparison };
    let compared: &[&str] = if comparison.is_some() { &COMPARISON_COLUMNS } else { &[] };
    let header = COLUMNS_BEFORE_KEYS.into_iter().chain(lines.keys.clone()).chain(COLUMNS_AFTER_KEYS);
    lines.writer.write_record(header.chain(compared.iter().copied()).chain([NOTE_COLUMN]))?;
    for outcome in &report.experiments {
        lines.write_experiment(outcome)?;
    }
    for caveat in caveats(report) {
        lines.write_note("", &caveat)?;
    }
    for condition in comparison.iter().flat_map(|comparison| &comparison.conditions) {
        lines.write_note("", &format!("different condition: {condition}"))?;
    }
    for gone in comparison.iter().copied().flat_map(describe_gone) {
        lines.write_note("", &gone)?;
    }
    lines.writer.into_inner().map_err(|error| error.into_error().into())
}

/// Returns the key columns of all experiments, each once. A key with the name of one of the fixed columns has no column; it appears only
/// in `case`.
fn keys(report: &Report) -> Vec<&str> {
    let mut keys: Vec<&str> = Vec::new();
    let columns = report.experiments.iter().flat_map(|outcome| &outcome.columns);
    for column in columns.filter(|column| column.is_key) {
        let name = column.name.as_str();
        let is_taken = COLUMNS_BEFORE_KEYS.contains(&name) || COLUMNS_AFTER_KEYS.contains(&name) || name == NOTE_COLUMN;
        if !is_taken && !keys.contains(&name) {
            keys.push(name);
        }
    }
    keys
}

struct CsvLines<'r> {
    writer: csv::Writer<Vec<u8>>,
    keys: Vec<&'r str>,
    comparison: Option<&'r Comparison>,
}

impl CsvLines<'_> {
    fn write_experiment(&mut self, outcome: &Outcome) -> Result<(), csv::Error> {
        for row in &outcome.rows {
            for column in outcome.columns.iter().filter(|column| !column.is_key) {
                let unit = serde_json::to_value(column.unit).unwrap_or_default();
                let unit = unit.as_str().unwrap_or_default();
                let figures = match row.get(&column.name) {
                    Value::Estimate(found) => {
                        [found.median, found.low, found.high, found.rounds as f64].map(|number| number.to_string())
                    }
                    Value::Number(number) => [number.to_string(), String::new(), String::new(), String::new()],
                    Value::Text(_) | Value::Unknown => continue,
                };
                let change = self.find_change(outcome, row, &column.name).cloned();
                self.write_measurement(
                    [&outcome.name, &label(outcome, row)],
                    Some(row),
                    [&column.name, unit],
                    figures,
                    change.as_ref(),
                )?;
            }
        }
        for fit in &outcome.fits {
            self.write_fit(outcome, fit)?;
        }
        let not_linear = outcome.fits.iter().filter(|fit| !fit.linearity.holds);
        let not_linear: Vec<String> = not_linear.map(describe_fit).collect();
        let notes = not_linear.iter().chain(&outcome.notes);
        notes.into_iter().try_for_each(|note| self.write_note(&outcome.name, note))
    }

    fn write_fit(&mut self, outcome: &Outcome, fit: &Fit) -> Result<(), csv::Error> {
        let per = format!("nanos per {}", fit.x_unit);
        let figures = [
            ("slope_ns", per.as_str(), Some(fit.slope_ns), fit.slope_interval_ns),
            ("at_zero_ns", "nanos", Some(fit.at_zero_ns), None),
            ("r_squared", "share", fit.r_squared, None),
        ];
        for (measure, unit, number, interval) in figures {
            let Some(number) = number else { continue };
            let [low, high] = interval.map_or_else(Default::default, |ends| ends.map(|end| end.to_string()));
            let figures = [number.to_string(), low, high, String::new()];
            self.write_measurement([&outcome.name, &fit.series], None, [measure, unit], figures, None)?;
        }
        Ok(())
    }

    fn write_measurement(
        &mut self,
        names: [&str; 2],
        row: Option<&Row>,
        measure: [&str; 2],
        figures: [String; 4],
        change: Option<&Change>,
    ) -> Result<(), csv::Error> {
        let keys = self.keys.iter().map(|name| match row.map(|row| row.get(name)) {
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        });
        let mut cells: Vec<String> = names.map(str::to_owned).to_vec();
        cells.extend(keys);
        cells.extend(measure.map(str::to_owned));
        cells.extend(figures);
        if self.comparison.is_some() {
            cells.extend(comparison_cells(change));
        }
        cells.push(String::new());
        self.writer.write_record(cells)
    }

    fn write_note(&mut self, experiment: &str, note: &str) -> Result<(), csv::Error> {
        let compared = if self.comparison.is_some() { COMPARISON_COLUMNS.len() } else { 0 };
        let between = std::iter::repeat_n("", self.keys.len());
        let after = std::iter::repeat_n("", COLUMNS_AFTER_KEYS.len() - 2 + compared);
        let cells = [experiment, ""].into_iter().chain(between).chain([NOTE_COLUMN, "text"]);
        self.writer.write_record(cells.chain(after).chain([note]))
    }

    fn find_change(&self, outcome: &Outcome, row: &Row, column: &str) -> Option<&Change> {
        let name = label(outcome, row);
        self.comparison?.changes.iter().find(|change| {
            change.experiment == outcome.name
                && change.column == column
                && change.case == name
                && change.keys.0.iter().all(|(key, value)| row.get(key) == value)
        })
    }
}

fn comparison_cells(change: Option<&Change>) -> [String; COMPARISON_COLUMNS.len()] {
    change.map_or_else(Default::default, |change| {
        let [old, ratio, low, high] =
            [change.old, change.ratio, change.low, change.high].map(|number| number.to_string());
        [old, ratio, low, high, change.stands_out.to_string()]
    })
}
