//! What differs from an older report of the lab.

use super::values::figure;
use crate::lab::compare::Change;
use crate::present::page::{Page, plain};
use crate::present::palette::QUIET;
use crate::units;

/// What differs beyond the noise, the largest first, and how much does not.
#[must_use]
pub fn comparison(changes: &[Change], width: usize) -> String {
    let mut page = Page::of_width(width);
    page.heading("Against the older report");
    let mut differing: Vec<&Change> = changes.iter().filter(|change| change.beyond_noise).collect();
    differing.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    for change in &differing {
        page.line([plain(format!(
            "  {:.2}x ({:.2} to {:.2})  {}: {}: {} -> {}",
            change.ratio,
            change.low,
            change.high,
            change.experiment,
            change.case,
            figure(change.old, change.unit),
            figure(change.new, change.unit),
        ))]);
    }
    let same = (changes.len() - differing.len()) as u64;
    let sentence = match (changes.len(), same) {
        (0, _) => "the two reports have no case in common".to_owned(),
        (_, 0) => "every case differs beyond the noise".to_owned(),
        _ => format!("{} within the noise", units::counted(same, "case is", "cases are")),
    };
    page.sentence(2, QUIET, &sentence);
    page.finish()
}
