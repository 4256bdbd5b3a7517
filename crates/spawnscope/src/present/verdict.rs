//! The verdict: the principal cause of the wall, even if nothing can be done about it, the command that the wall depends on, and the most
//! worthwhile finding that the user can fix, with its saving.

use super::whatif::has_visible_overhead;
use super::{critical, episodes, text, units};
use crate::analyze::advice::Advice;
use crate::analyze::dependence::Dependence;
use crate::analyze::external_wait::ExternalWait;
use crate::analyze::groups::THE_RECORDER;
use crate::analyze::principal::culprit;
use crate::analyze::replay::{is_believable, unbelievable};
use crate::analyze::report::{GroupBy, Report, Spent};
use crate::event::Nanos;

/// If the launch tax is at least this share of the wall, it is reported as a problem even without a known fix.
const NOTABLE_TAX: f64 = 0.2;
/// A command that does at least this share of all work is named as the cause.
const DOMINANT_SHARE: f64 = 0.5;
/// The time that depends on a command is reported in addition to its own work only if it exceeds that work by this share of the wall.
const MIN_DIFFERENCE: f64 = 0.05;

/// The beginning of a verdict if there is neither advice, nor a large launch tax, nor a command that the wall depends on.
pub(super) const NOTHING: &str = "Nothing worth changing";

/// The rule that finds scripts that sleep until something happens.
const POLLING: &str = "sleep-loop";

/// Returns the verdict in one to three sentences, or `None` for a recording without scheduling data. The
/// verdict on a recording of the whole machine is about its busiest episode.
#[must_use]
pub fn verdict(report: &Report) -> Option<String> {
    if let Some(busiest) = &report.busiest {
        let title = busiest.window.as_ref().map(episodes::window_title).unwrap_or_default();
        return Some(format!("Busiest episode, {title}: {}", verdict(busiest)?));
    }
    if let Some(error) = report.replay_error.filter(|error| !is_believable(*error)) {
        return Some(format!("No verdict: {}.", unbelievable(error)));
    }
    let mut sentences = vec![principal_sentence(report)?];
    let (largest, _) = report.where_the_wall_went.first()?;
    if !matches!(largest, Spent::Tax | Spent::ExternalWait(ExternalWait::Unknown, _)) {
        sentences.push(launch_tax_sentence(report));
    }
    let best = report.advices.worth.first();
    if matches!(largest, Spent::ExternalWait(ExternalWait::Timer, _))
        && best.is_none_or(|best| best.finding.rule != POLLING)
    {
        sentences.extend(polling_sentence(report));
    }
    sentences.extend(best.map(|best| best_fix_sentence(best, report)));
    Some(sentences.join(" "))
}

/// Returns the sentence about a loop that sleeps, even if the event that the loop waits for, and therefore the saving, is unknown.
fn polling_sentence(report: &Report) -> Option<String> {
    let unsure = report.advices.not_worth.iter().map(|(_, advice)| advice);
    let mut all = report.advices.worth.iter().chain(unsure);
    let polling = all.find(|advice| advice.finding.rule == POLLING)?;
    let title = text::escape(polling.finding.title.as_bytes());
    Some(format!("{title}; wait for the event itself instead."))
}

/// Returns the sentence about the largest part of the wall.
fn principal_sentence(report: &Report) -> Option<String> {
    let (largest, time) = report.where_the_wall_went.first()?;
    let share = units::percent(*time, report.wall);
    let culprit = culprit(&report.dependence, report.advices.unrecorded);
    Some(match (largest, culprit) {
        (Spent::Tax, _) => {
            let cause = largest_cause(report).unwrap_or_default();
            let tax = format!("Starting and ending programs takes {share} of the wall{cause}");
            format!(
                "{tax}.{}",
                culprit
                    .map(|each| format!(" {}.", depends_clause(each, report)))
                    .unwrap_or_default()
            )
        }
        (Spent::Run, _) => work_sentence(report, *time, culprit),
        (Spent::ExternalWait(ExternalWait::Unknown, _), None) => format!("{share} of the wall is unknown."),
        (_, Some(culprit)) => {
            format!(
                "{}; {share} of the wall is {}.",
                depends_clause(culprit, report),
                spent_clause(largest)
            )
        }
        (_, None) => {
            let nothing = if has_nothing_to_report(report) {
                format!("{NOTHING}: ")
            } else {
                String::new()
            };
            format!("{nothing}{share} of the wall is {}.", spent_clause(largest))
        }
    })
}

/// Returns the end of a sentence that begins with `69.0 % of the wall is`.
fn spent_clause(what: &Spent) -> String {
    match what {
        Spent::RunQueue => "spent waiting for a CPU".to_owned(),
        Spent::ExternalWait(ExternalWait::Recorder | ExternalWait::Unknown, _) => critical::description(what),
        _ => format!("spent {}", critical::description(what)),
    }
}

/// Returns the sentence about programs that work most of the time.
fn work_sentence(report: &Report, all: Nanos, culprit: Option<&Dependence>) -> String {
    let most = report
        .work
        .as_ref()
        .filter(|most| most.time.0 as f64 >= DOMINANT_SHARE * all.0 as f64);
    let clause = match most {
        Some(most) => {
            let label = text::escape(&most.label);
            let launches = if most.count > 1 {
                format!(" in {} launches", units::count(most.count))
            } else {
                String::new()
            };
            let share = units::percent(most.time, report.wall);
            format!("{share} of the wall is {label} working{launches}")
        }
        None => {
            let share = units::percent(all, report.wall);
            format!("{share} of the wall is spent running programs")
        }
    };
    let own_work = most.map_or(0, |most| most.time.0) as f64;
    let more = culprit.filter(|each| each.saving[0].0 as f64 >= own_work + MIN_DIFFERENCE * report.wall.0 as f64);
    match more {
        Some(culprit) => format!("{clause}; {}.", depends_clause(culprit, report)),
        None if has_nothing_to_report(report) => format!("{NOTHING}: {clause}."),
        None => format!("{clause}."),
    }
}

/// Whether there is neither advice, nor a large launch tax, nor a command that the wall depends on.
fn has_nothing_to_report(report: &Report) -> bool {
    let culprit = culprit(&report.dependence, report.advices.unrecorded);
    report.advices.worth.is_empty() && !is_notable(critical_tax(report), report) && culprit.is_none()
}

/// Formats `83.0 % of the wall depends on 41 x git`.
fn depends_clause(culprit: &Dependence, report: &Report) -> String {
    let share = units::percent(culprit.saving[0], report.advices.unrecorded);
    let count = units::count(culprit.count);
    format!(
        "{share} of the wall depends on {count} x {}",
        text::escape(&culprit.label)
    )
}

fn critical_tax(report: &Report) -> Nanos {
    let tax = report.where_the_wall_went.iter().find(|(what, _)| *what == Spent::Tax);
    tax.map_or(Nanos(0), |(_, tax)| *tax)
}

fn is_notable(tax: Nanos, report: &Report) -> bool {
    tax.0 as f64 >= NOTABLE_TAX * report.wall.0 as f64
}

/// Returns the sentence about the launch tax if it is not the principal cause.
fn launch_tax_sentence(report: &Report) -> String {
    let tax = critical_tax(report);
    let share = units::percent(tax, report.wall);
    let cause = if is_notable(tax, report) {
        largest_cause(report).unwrap_or_default()
    } else {
        String::new()
    };
    format!("Starting and ending programs takes {share} of the wall{cause}.")
}

fn best_fix_sentence(best: &Advice, report: &Report) -> String {
    let [expected, least, most] = best.saving.map(units::time);
    let unrecorded = report.advices.unrecorded;
    let wall = if has_visible_overhead(report.wall, unrecorded) {
        format!("{} without recording overhead", units::time(unrecorded))
    } else {
        units::time(report.wall)
    };
    let title = text::escape(best.finding.title.as_bytes());
    format!("Worth fixing first: {title}; that saves {expected} ({least} to {most}) of {wall}.")
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
        GroupBy::Command | GroupBy::Arguments | GroupBy::Subcommand => {
            format!("{} x {label}", units::count(largest.sums.count))
        }
        GroupBy::Label(_) => {
            let launches = units::counted(largest.sums.count, "launch", "launches");
            format!("for {launches} of {label}")
        }
        GroupBy::Parent | GroupBy::Line | GroupBy::Caller => {
            let launches = units::counted(largest.sums.count, "launch", "launches");
            format!("{launches} by {label}")
        }
    };
    Some(format!("; the largest part, {part}, is for {cause}"))
}
