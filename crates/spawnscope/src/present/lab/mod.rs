//! Renders the lab's results for people and programs: tables for terminals, JSON, and a page with
//! plots.

mod html;
mod terminal;
mod values;

use serde_json::json;

pub use self::html::html;
pub use self::terminal::{experiment, list, machine, render_end};
use super::json_values;
use crate::lab::experiments::Experiment;
use crate::lab::outcome::{BenchReport, SCHEMA_VERSION};

pub fn json(report: &BenchReport) -> String {
    json_values::text(&json!(report))
}

pub fn list_json(experiments: &[Experiment]) -> String {
    let all = experiments.iter().map(|experiment| json!({"name": experiment.name, "about": experiment.about}));
    json_values::text(&json!({"schema_version": SCHEMA_VERSION, "experiments": all.collect::<Vec<_>>()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::machine::Machine;
    use crate::lab::measurements::{Estimate, Value};
    use crate::lab::outcome::{Outcome, Row, Scale, Unit, key, measure};

    const CASE: &str = "\"a\", | <b> & \u{1b}[2J";

    /// Returns a report with texts that look like markup of each format.
    fn hostile() -> BenchReport {
        let columns = vec![
            key("case", "a<b|c", Unit::Text),
            key("size", "size", Unit::Bytes),
            measure("wall_ns", "wall", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("<script>alert(1)</script>", columns);
        outcome.name = "name".to_owned();
        outcome.draw("size", "wall_ns", &["case"], Scale::Logarithmic);
        let measured = Value::from(Estimate::from_values(&[1e6, 2e6, 3e6]));
        for (case, size, wall) in
            [(CASE, 0, measured.clone()), (CASE, 1_000_000, measured), ("unknown", 1_000_000, Value::Unknown)]
        {
            let values = [("case", Value::from(case)), ("size", Value::from(size)), ("wall_ns", wall)];
            outcome.rows.push(Row(values.map(|(name, value)| (name.to_owned(), value)).to_vec()));
        }
        outcome.note("a note | with <tags>");
        BenchReport { experiments: vec![outcome], ..BenchReport::new(Machine::read(), false) }
    }

    #[test]
    fn no_text_is_interpreted_as_markup() {
        let page = html(&hostile());
        assert!(!page.contains("<script") && !page.contains("<b>") && page.contains("&lt;script&gt;"));
        assert_well_formed(&page);
        assert!(page.contains("<svg"), "the plot, too");
        let outside_of_names = page.replace("http://www.w3.org/", "");
        assert!(!["http://", "https://", "<link", "src="].iter().any(|reference| outside_of_names.contains(reference)));
    }

    /// Checks that every tag is closed, in order.
    fn assert_well_formed(page: &str) {
        let mut open: Vec<&str> = Vec::new();
        for tag in page.split('<').skip(1) {
            let (tag, text) = tag.split_once('>').unwrap_or_else(|| panic!("unterminated tag: {tag}"));
            assert!(!text.contains('>'), "unescaped: {text}");
            let name = tag.split_whitespace().next().expect("a name");
            if let Some(closed) = name.strip_prefix('/') {
                assert_eq!(open.pop(), Some(closed));
            } else if !tag.ends_with('/') && !name.starts_with('!') {
                open.push(name);
            }
        }
        assert_eq!(open, Vec::<&str>::new());
    }
}
