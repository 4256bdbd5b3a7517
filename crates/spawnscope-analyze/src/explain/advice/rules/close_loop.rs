//! Children that close descriptors one by one before their exec, often up to a limit of thousands
//! or millions.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::explain::advice::thresholds::Candidate;
use crate::predict::whatif::changes::Change;
use spawnscope_data::units;

/// Minimum number of `close` calls before an exec that count as a loop. Shells and libraries that
/// set up redirections make about ten.
const MIN_CLOSES: u32 = 32;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let candidates = context.candidates(|_, launch| {
        launch.counts.setup_closes.filter(|closes| *closes >= MIN_CLOSES)?;
        Some((launch.birth_command.name, launch.counts.setup_close_span.get()?))
    });
    candidates.into_iter().map(|candidate| finding(context, candidate)).collect()
}

fn finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let parent = name(candidate.name);
    let closes = context.median_of(&candidate.launches, |launch| launch.counts.setup_closes.map(f64::from));
    let title = format!("children of {parent} close descriptors one by one before the exec");
    let count = launches(candidate.launches.len());
    Finding::measured("close-loop", title, candidate.launches)
        .evidence(format!(
            "{count} by {parent} made a median of {} `close` calls before the exec; the calls took {} in all",
            units::count(closes.unwrap_or_default() as u64),
            time(candidate.max_saving),
        ))
        .with_example(context)
        .recipe("close-loop", &[], &[])
        .predicted_by(Change::CloseRange, format!("--close-range=parent={parent}"))
}
