//! What a report is about: its title, its wall time, and how much was started, with which reports,
//! pages and traces begin. Also savings in words: as a share of the wall time and in time, each
//! with its interval.

use super::{text, units};
use crate::analyze::explain::report::Report;
use crate::analyze::model::window::WindowTitle;
use crate::event::{Nanos, Pid};

/// Formats a recording as the last argument of a printed command.
pub(super) fn argument(file: Option<&str>) -> String {
    file.map_or_else(String::new, |file| format!(" {file}"))
}

/// Returns the title of a report: the command, the window, or what was followed.
pub(super) fn title(report: &Report, width: usize) -> String {
    if !report.info.command.is_empty() {
        return text::command_line(report.info.command.iter().map(Vec::as_slice), Some(width));
    }
    if let Some(window) = &report.window {
        return text::truncate(&window_title(window), width);
    }
    match &report.followed {
        Some((pid, name)) => format!("launches by process {} ({}) and below", pid.0, text::escape(name)),
        None => "launches on this machine".to_owned(),
    }
}

/// Returns the report whose launches are explained: for a recording of the whole machine, the
/// report on its busiest episode.
pub(super) fn report_to_explain(report: &Report) -> &Report {
    report.busiest.as_deref().unwrap_or(report)
}

/// Formats the title of a window: its process and its span.
pub(super) fn window_title(window: &WindowTitle) -> String {
    let (from, to) = (units::time(window.from), units::time(window.to));
    format!("{}, {from} to {to}", process_label(&window.label, window.pid))
}

pub(super) fn totals(report: &Report) -> String {
    let failed = report.all.failed_execs;
    let mut totals = facts(report);
    totals.extend((failed > 0).then(|| units::counted(failed, "failed exec", "failed execs")));
    totals.extend(start_up(report));
    totals.join(", ")
}

/// Returns the wall time, and how many programs were started on how many CPUs.
pub(super) fn facts(report: &Report) -> Vec<String> {
    let all = &report.all;
    let programs = all.count - all.forks_without_exec;
    let mut facts = vec![
        format!("{}{}", units::time(report.wall), wall_note(report)),
        units::counted(programs, "program started", "programs started"),
    ];
    facts.extend((all.forks_without_exec > 0).then(|| units::counted(all.forks_without_exec, "fork", "forks")));
    facts.extend(cpus(report));
    facts
}

/// Returns the number of CPUs, if it is known, and how many of them the command was allowed to use
/// if not all.
pub(super) fn cpus(report: &Report) -> Option<String> {
    if report.info.cpus == 0 {
        return None;
    }
    let all = units::counted(u64::from(report.info.cpus), "CPU", "CPUs");
    Some(match report.info.allowed_cpus.filter(|allowed| *allowed < f64::from(report.info.cpus)) {
        Some(allowed) => format!("{} of {all} allowed", (10.0 * allowed).round() / 10.0),
        None => all,
    })
}

/// Says up to when the wall time of an unfinished recording is.
pub(super) fn wall_note(report: &Report) -> &'static str {
    match () {
        () if report.info.is_live => " so far",
        () if report.is_cut_off() => " up to the last stored batch",
        () => "",
    }
}

/// Returns the launch tax, and how much of it is on the critical path. Without wakers, the
/// reconstructed path contains phases whose times are unknown.
fn start_up(report: &Report) -> Option<String> {
    let tax = units::time(report.all.tax?);
    let least = if is_tax_partial(report) { "at least " } else { "" };
    Some(match report.all.critical_tax.map(units::time) {
        None if !report.info.sees_scheduler() => {
            format!("start-up {least}{tax} (how much of it is on the critical path is unknown)")
        }
        None => format!("start-up {least}{tax}"),
        // The second time may be larger than the first one.
        Some(critical) if report.is_reconstructed => {
            format!("start-up {least}{tax} ({critical} on the critical path, with unknown phases)")
        }
        Some(critical) => format!("start-up {tax} ({critical} of it on the critical path)"),
    })
}

/// Whether the launch tax is a lower bound: collectors that do not record the scheduler do not
/// record some phases.
pub(super) fn is_tax_partial(report: &Report) -> bool {
    !report.info.sees_scheduler()
}

pub(super) fn process_label(label: &[u8], pid: Option<Pid>) -> String {
    let name = text::escape(label);
    match pid {
        Some(pid) => format!("{name} (pid {})", pid.0),
        None => name,
    }
}

/// Share of the wall below which the overhead of recording is not mentioned.
const MIN_OVERHEAD_SHARE: f64 = 0.005;

/// Says what savings are shares of. Without visible overhead, that is the wall time above.
pub(super) fn savings_legend(wall: Nanos, unrecorded: Nanos) -> String {
    let of = format!("; 100 % is {}, the run without recording", units::time(unrecorded));
    let is_other = units::time(unrecorded) != units::time(wall);
    format!("predicted, with 95 % intervals{}", if is_other { &of } else { "" })
}

/// Formats a saving as a share of the wall time, and in time: `39.1 %, 76.0 ms (60.1 to 91.9)`. If
/// it may be nothing, the most is what is known.
pub fn share_and_amount(saving @ [expected, low, high]: [Nanos; 3], unrecorded: Nanos) -> String {
    let share = units::percent(expected, unrecorded);
    match saving {
        [Nanos(0), ..] => format!("up to {}, {}", units::percent(high, unrecorded), units::time(high)),
        [_, Nanos(0), _] => format!("about {share}, {} (at most {})", units::time(expected), units::time(high)),
        _ => {
            let (time, interval) = (units::time(expected), units::interval(low, high));
            // Three figures with the same unit have it once.
            let unit = time.split_once(' ').map_or("", |(_, unit)| unit);
            let figures = interval.strip_suffix(unit).map(str::trim_end);
            let interval = figures.filter(|figures| figures.matches(' ').count() == 2).unwrap_or(&interval);
            format!("{share}, {time} ({interval})")
        }
    }
}

/// Returns the name of the wall that savings are a share of: the wall without the overhead of
/// recording.
pub(super) fn wall_name(wall: Nanos, unrecorded: Nanos) -> &'static str {
    if has_visible_overhead(wall, unrecorded) { "the wall time without recording overhead" } else { "the wall time" }
}

pub(super) fn has_visible_overhead(wall: Nanos, unrecorded: Nanos) -> bool {
    wall.since(unrecorded).0 as f64 >= MIN_OVERHEAD_SHARE * wall.0 as f64
}
