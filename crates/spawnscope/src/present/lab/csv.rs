//! The lab's report as CSV: a line a measurement, so that all experiments have the same columns.

use crate::lab::compare::label;
use crate::lab::outcome::{Report, Value};

/// The whole report.
///
/// # Errors
/// Never in practice: it is written to memory.
pub fn csv(report: &Report) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "experiment",
        "case",
        "measure",
        "unit",
        "median",
        "low",
        "high",
        "rounds",
    ])?;
    for outcome in &report.experiments {
        for row in &outcome.rows {
            let case = label(outcome, row);
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
                let start = [outcome.name.as_str(), &case, &column.name, unit];
                writer.write_record(start.into_iter().chain(figures.iter().map(String::as_str)))?;
            }
        }
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}
