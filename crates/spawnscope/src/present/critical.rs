//! The report's section on the critical path, and the names of the parts of the wall.

use super::page::{PLAIN, Page, QUIET, plain};
use super::{text, units};
use crate::analyze::explain::report::{Report, Spent};
use crate::analyze::model::external_wait::ExternalWait;
use crate::event::Nanos;

/// Parts below this share of the wall are not printed.
const MIN_SHARE: f64 = 0.001;

/// Returns the name of a part of the wall for JSON.
pub(super) fn json_key(what: &Spent) -> &'static str {
    match what {
        Spent::Tax => "launch_tax",
        Spent::Run => "run",
        Spent::RunQueue => "run_queue",
        Spent::ExternalWait(ExternalWait::Timer, _) => "timer",
        Spent::ExternalWait(ExternalWait::Disk, _) => "disk",
        Spent::ExternalWait(ExternalWait::Network, _) => "network",
        Spent::ExternalWait(ExternalWait::Process(_), _) => "process",
        Spent::ExternalWait(ExternalWait::Scanner(_), _) => "scanner",
        Spent::ExternalWait(ExternalWait::Stopped, _) => "stopped",
        Spent::ExternalWait(ExternalWait::Recorder, _) => "recorder",
        Spent::ExternalWait(ExternalWait::Unknown, _) => "unknown",
    }
}

/// Describes a part of the wall in a few words.
pub(super) fn description(what: &Spent) -> String {
    text::escape(what.description().as_bytes())
}

pub(super) fn print_critical_path(page: &mut Page, report: &Report) {
    if report.where_the_wall_went.is_empty() {
        return;
    }
    page.heading("Where the wall time goes: the critical path");
    print_parts(page, &report.where_the_wall_went, report.wall);
    page.sentence(2, QUIET, "each moment counts once, for the activity on the critical path");
    if let Some(error) = report.replay_error {
        let error =
            format!("replay error: {} (the simulated against the recorded wall time)", units::signed_percent(error));
        page.sentence(2, QUIET, &error);
    }
    if report.is_reconstructed {
        page.sentence(2, QUIET, &reconstruction_note(&report.info.collector));
    }
}

/// Returns the note that the causes of waits were not recorded.
pub(super) fn reconstruction_note(collector: &str) -> String {
    format!(
        "{} does not record what ends a wait: the path is reconstructed from the ends of children, and waits with an unknown cause widen the \
         intervals",
        text::escape(collector.as_bytes())
    )
}

/// Prints a line for each part of the wall whose share is at least `MIN_SHARE`.
pub(super) fn print_parts(page: &mut Page, parts: &[(Spent, Nanos)], wall: Nanos) {
    for (what, time) in parts {
        if (time.0 as f64) < MIN_SHARE * wall.0 as f64 {
            continue;
        }
        let figure = text::pad_left(&units::time(*time), 10);
        let share = text::pad_left(&units::percent(*time, wall), 8);
        page.hanging([plain(format!("  {figure}{share}   "))], PLAIN, &description(what));
    }
}
