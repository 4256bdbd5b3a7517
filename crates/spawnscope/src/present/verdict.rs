//! The verdict: the share of the wall that launches take, the largest cause, and the best fix with its saving.

use super::whatif::took_time;
use super::{critical, episodes, text, units};
use crate::analyze::advice::Advice;
use crate::analyze::external_wait::ExternalWait;
use crate::analyze::groups::THE_RECORDER;
use crate::analyze::replay::{is_believable, unbelievable};
use crate::analyze::report::{GroupBy, Report, Spent};
use crate::event::Nanos;

/// If the launch tax is at least this share of the wall, it is reported as a problem even without a known fix.
const NOTABLE_TAX: f64 = 0.2;

/// Returns the verdict in one or two sentences, or `None` for a recording without scheduling data. That of a recording of the whole machine is
/// about its busiest episode.
#[must_use]
pub fn verdict(report: &Report) -> Option<String> {
    if let Some(busiest) = &report.busiest {
        let title = busiest.window.as_ref().map(episodes::title).unwrap_or_default();
        return Some(format!("Busiest episode, {title}: {}", verdict(busiest)?));
    }
    if let Some(error) = report.replay_error.filter(|error| !is_believable(*error)) {
        return Some(format!("No verdict: {}.", unbelievable(error)));
    }
    let (largest, time) = report.where_the_wall_went.first()?;
    let tax = report.where_the_wall_went.iter().find(|(what, _)| *what == Spent::Tax);
    let tax = tax.map_or(Nanos(0), |(_, tax)| *tax);
    let starting = format!(
        "Starting and ending programs takes {} of the wall",
        units::percent(tax, report.wall)
    );
    if let Some(best) = report.advices.worth.first() {
        let cause = largest_cause(report).unwrap_or_default();
        return Some(format!("{starting}{cause}. {}", best_fix(best, report)));
    }
    if tax.0 as f64 >= NOTABLE_TAX * report.wall.0 as f64 {
        let cause = largest_cause(report).unwrap_or_default();
        return Some(format!("{starting}{cause}."));
    }
    let share = units::percent(*time, report.wall);
    if let Spent::ExternalWait(ExternalWait::Unknown, _) = largest {
        return Some(format!("{share} of the wall is unknown."));
    }
    let largest = critical::words(largest);
    Some(format!(
        "Nothing worth changing: {share} of the wall is {largest}. {starting}."
    ))
}

fn best_fix(best: &Advice, report: &Report) -> String {
    let [expected, least, most] = best.saving.map(units::time);
    let unrecorded = report.advices.unrecorded;
    let wall = if took_time(report.wall, unrecorded) {
        format!(
            "the {} that {} takes without recording",
            units::time(unrecorded),
            if report.window.is_some() { "it" } else { "the command" }
        )
    } else {
        units::time(report.wall)
    };
    let title = text::escape(best.finding.title.as_bytes());
    format!("The best fix saves {expected} ({least} to {most}) of {wall}: {title}.")
}

/// Describes the row of the table with the largest tax on the critical path, as the end of a clause.
fn largest_cause(report: &Report) -> Option<String> {
    let groups = report.groups.iter().filter(|group| group.label != THE_RECORDER);
    let largest = groups
        .filter(|group| group.sums.critical_tax > Some(Nanos(0)))
        .max_by_key(|group| group.sums.critical_tax)?;
    let label = text::escape(&largest.label);
    let part = units::time(largest.sums.critical_tax);
    let cause = match report.group_by {
        GroupBy::Command | GroupBy::Arguments => format!("for {} x {label}", units::count(largest.sums.count)),
        GroupBy::Parent | GroupBy::Line | GroupBy::Caller => {
            let launches = units::counted(largest.sums.count, "launch", "launches");
            format!("for {launches} by {label}")
        }
    };
    Some(format!(", the largest part {cause} ({part})"))
}
