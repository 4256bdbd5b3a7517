//! Renders the lab's results for people and programs: tables for terminals, Markdown, CSV, JSON, and a page with plots.

mod comparison;
mod csv;
mod grid;
mod headline;
mod html;
mod layout;
mod markdown;
mod plot;
mod terminal;
mod values;

pub use csv::csv;
pub use html::html;
pub use markdown::markdown;
pub use terminal::{experiment, list, machine, render_end};

use crate::lab::compare::Comparison;
use crate::lab::experiments::Experiment;
use crate::lab::outcome::{Report, SCHEMA_VERSION};

/// Renders the report as JSON, with the comparison if there is one.
#[must_use]
pub fn json(report: &Report, comparison: Option<&Comparison>) -> String {
    #[derive(serde::Serialize)]
    struct ReportWithComparison<'a> {
        #[serde(flatten)]
        report: &'a Report,
        #[serde(skip_serializing_if = "Option::is_none")]
        comparison: Option<&'a Comparison>,
    }
    pretty(&ReportWithComparison { report, comparison })
}

/// Renders the list of experiments as JSON.
#[must_use]
pub fn list_json(experiments: &[Experiment]) -> String {
    let all: Vec<serde_json::Value> = experiments
        .iter()
        .map(|experiment| serde_json::json!({"name": experiment.name, "about": experiment.about}))
        .collect();
    pretty(&serde_json::json!({"schema_version": SCHEMA_VERSION, "experiments": all}))
}

fn pretty(value: &impl serde::Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::harness::Estimate;
    use crate::lab::linearity::Linearity;
    use crate::lab::machine::Machine;
    use crate::lab::outcome::{Fit, Outcome, Row, Scale, Unit, Value, key, measure};

    const CASE: &str = "\"a\", | <b> & \u{1b}[2J";

    /// Returns a report with texts that look like markup of each format.
    fn hostile() -> Report {
        let columns = vec![
            key("case", "a<b|c", Unit::Text),
            key("size", "size", Unit::Bytes),
            measure("wall_ns", "wall", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("<script>alert(1)</script>", columns);
        outcome.name = "name".to_owned();
        outcome.draw("size", "wall_ns", &["case"], [Scale::Logarithmic, Scale::Logarithmic]);
        let measured = Value::from(Estimate::from_values(&[1e6, 2e6, 3e6]));
        for (case, size, wall) in
            [(CASE, 0, measured.clone()), (CASE, 1_000_000, measured), ("unknown", 1_000_000, Value::Unknown)]
        {
            let values = [("case", Value::from(case)), ("size", Value::from(size)), ("wall_ns", wall)];
            outcome.rows.push(Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec()));
        }
        outcome.note("a note | with <tags>");
        Report { experiments: vec![outcome], ..Report::new(Machine::read(), false) }
    }

    #[test]
    fn no_text_is_interpreted_as_markup_or_as_the_end_of_a_cell() {
        let report = hostile();
        let page = html(&report, None);
        assert!(!page.contains("<script") && !page.contains("<b>") && page.contains("&lt;script&gt;"));
        assert_eq!(page.matches("alert(1)").count(), 1, "a title is written once");
        let cells: Vec<usize> = markdown(&report, None)
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.replace("\\|", "").matches('|').count())
            .collect();
        assert_eq!(cells, [4; 3], "two lines of the table are headings");
        let written = csv(&report, None).unwrap();
        let mut lines = ::csv::Reader::from_reader(written.as_slice());
        let rows: Vec<::csv::StringRecord> = lines.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3, "the unknown value is omitted; the note has a line");
        assert_eq!((&rows[1][2], &rows[2][9]), ("1000000", "a note | with <tags>"));
        assert!(rows[0][1].starts_with("\"a\", | <b>"));
    }

    #[test]
    fn csv_has_the_interval_of_a_slope_and_a_note_if_a_fit_is_not_linear() {
        let mut report = hostile();
        report.experiments[0].fits = vec![Fit {
            series: "a".to_owned(),
            at_zero_ns: -5.0,
            slope_ns: 100.0,
            slope_interval_ns: Some([85.0, 115.0]),
            x_unit: "MB".to_owned(),
            r_squared: None,
            linearity: Linearity::default(),
        }];
        let written = String::from_utf8(csv(&report, None).unwrap()).unwrap();
        for line in
            ["slope_ns,nanos per MB,100,85,115,,", "at_zero_ns,nanos,-5,,,,", "note,text,,,,,a: not linear (R² 0.00)"]
        {
            assert!(written.contains(line), "{line} in\n{written}");
        }
    }

    #[test]
    fn json_is_read_as_it_was_written() {
        let report = hostile();
        let again: Report = serde_json::from_str(&json(&report, None)).unwrap();
        assert_eq!(again.experiments[0].rows, report.experiments[0].rows);
        assert_eq!(again.experiments[0].chart, report.experiments[0].chart);
    }

    #[test]
    fn an_unknown_value_is_a_dash_and_wide_intervals_are_marked() {
        let mut report = hostile();
        let text = experiment(&report.experiments[0], 80);
        assert!(text.contains("~2.00 ms") && text.contains("wider than"), "{text}");
        report.experiments[0].chart = None;
        let text = experiment(&report.experiments[0], 80);
        let unknown = text.lines().find(|line| line.contains("unknown")).unwrap();
        assert!(unknown.trim_end().ends_with('-'), "{text}");
        assert!(!text.contains("\u{1b}[2J"), "{text}");
    }
}
