//! What the lab found, for people and programs: tables for terminals, Markdown, CSV, JSON, and a page with plots.

mod comparison;
mod csv;
mod html;
mod markdown;
mod plot;
mod terminal;
mod values;

pub use comparison::comparison;
pub use csv::csv;
pub use html::html;
pub use markdown::markdown;
pub use terminal::{experiment, list, machine};

use crate::lab::compare::Change;
use crate::lab::outcome::Report;

/// The report as JSON, with what differs from an older one where there is one.
///
/// # Panics
/// Never: all keys are text and all numbers finite or null.
#[must_use]
pub fn json(report: &Report, changes: Option<&[Change]>) -> String {
    #[derive(serde::Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        report: &'a Report,
        #[serde(skip_serializing_if = "Option::is_none")]
        comparison: Option<&'a [Change]>,
    }
    let whole = Whole {
        report,
        comparison: changes,
    };
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}
