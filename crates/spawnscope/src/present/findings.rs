//! Sections of the report: labels, PATH search, failed execs, drift, caveats about the figures,
//! repeated command lines, commands through a shell, and the busiest episodes.

use super::headline::{argument, process_label};
use super::page::{Column, Columns, FINDING, PLAIN, Page, QUIET, WARNING, column, plain, styled};
use super::{text, units, words};
use crate::analyze::explain::drift::Drift;
use crate::analyze::explain::report::Report;
use crate::analyze::explain::tool_calls::{Reason, ToolCalls, fixes};
use crate::analyze::model::window::Episode;
use crate::analyze::waits::failed_execs::{Failure, Fault};
use crate::event::Nanos;

/// Maximum number of directories, and of programs, that the PATH search section lists.
const MAX_FAULTS: usize = 8;
/// Minimum width of a name, in columns. Columns of figures are dropped to keep this width.
const NAME_WIDTH: usize = 16;
/// The columns of the tables of directories and programs that caused misses.
const FIGURES: [Column; 3] = [column("misses", 10, 3), column("searches", 10, 1), column("time", 11, 2)];
const MAX_DRIFTS: usize = 5;
/// Glyphs for bar heights within one row.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Prints the labels of the recording. Their values are untrusted, and a long value takes several
/// lines.
pub(super) fn print_labels(page: &mut Page, report: &Report) {
    let Some(widest) = report.info.labels.iter().map(|label| label.key.len()).max() else { return };
    page.heading("Labels");
    for label in &report.info.labels {
        let key = plain(format!("  {:<widest$}  ", label.key));
        page.hanging([key], PLAIN, &text::escape(label.value.as_bytes()));
    }
}

/// Prints the cost of PATH searches, and the directories and programs that caused misses.
pub(super) fn print_path_searches(page: &mut Page, report: &Report) {
    let found = &report.path_searches;
    if found.searches == 0 {
        return;
    }
    page.heading("PATH search");
    let searches = units::counted(found.searches, "search", "searches");
    let misses = units::counted(found.misses, "miss", "misses");
    page.sentence(2, PLAIN, &format!("{searches} with {misses} took {}", units::time(found.cost)));
    let missed = Faults {
        title: "missed in",
        names: found.directories.iter().map(|fault| text::escape(&fault.name)).collect(),
        faults: &found.directories,
    };
    let never_launched = Faults {
        title: "never launched",
        names: found.not_found.iter().map(name_with_reason).collect(),
        faults: &found.not_found,
    };
    let widest = missed.widest().max(never_launched.widest());
    missed.print(page, widest);
    never_launched.print(page, widest);
}

fn name_with_reason(fault: &Fault) -> String {
    let why = match fault.errno {
        libc::EACCES => "permission denied",
        _ => "not found",
    };
    format!("{} ({why})", text::escape(&fault.name))
}

/// A table of directories or programs that caused misses, most expensive first.
struct Faults<'f> {
    title: &'static str,
    names: Vec<String>,
    faults: &'f [Fault],
}

impl Faults<'_> {
    /// Returns the width of the title or of the widest name that is printed, whichever is larger.
    fn widest(&self) -> usize {
        text::widest(&self.names[..self.names.len().min(MAX_FAULTS)], self.title)
    }

    fn print(&self, page: &mut Page, widest: usize) {
        if self.faults.is_empty() {
            return;
        }
        let shown = &self.faults[..self.faults.len().min(MAX_FAULTS)];
        let rows: Vec<Vec<String>> = shown.iter().map(fault_figures).collect();
        let columns = Columns::fit(page.width().saturating_sub(2 + NAME_WIDTH), &FIGURES, &rows);
        page.table(self.title, &self.names, columns.name_width(page.width(), widest), &columns, &rows);
        if let Some(more) = self.faults.len().checked_sub(MAX_FAULTS).filter(|more| *more > 0) {
            page.line([styled(QUIET, format!("  … {} more", units::count(more as u64)))]);
        }
    }
}

fn fault_figures(fault: &Fault) -> Vec<String> {
    vec![units::count(fault.misses), units::count(fault.searches), units::time(fault.cost)]
}

/// Prints failed execs that were not part of a PATH search, by errno.
pub(super) fn print_failures(page: &mut Page, report: &Report) {
    if report.failures.is_empty() {
        return;
    }
    page.heading("Failed execs outside of PATH searches");
    for failure in &report.failures {
        let Failure { errno, count, .. } = *failure;
        let others = match failure.files - 1 {
            0 => String::new(),
            others => format!(" and {}", units::counted(others, "other file", "other files")),
        };
        let (name, meaning) = (words::errno_name(errno), words::errno_meaning(errno));
        let path = text::escape(&failure.path);
        let times = units::count(count);
        page.sentence(2, PLAIN, &format!("{times} x {name} ({meaning}): {path}{others}"));
    }
}

pub(super) fn print_drifts(page: &mut Page, report: &Report) {
    if report.drifts.is_empty() {
        return;
    }
    page.heading("Launches that became slower");
    for drift in report.drifts.iter().take(MAX_DRIFTS) {
        print_drift(page, drift);
    }
    if let Some(more) = report.drifts.len().checked_sub(MAX_DRIFTS).filter(|more| *more > 0) {
        page.line([styled(QUIET, format!("  … {}", units::counted(more as u64, "more parent", "more parents")))]);
    }
}

fn print_drift(page: &mut Page, drift: &Drift) {
    let (Some(first), Some(last)) = (drift.segments.first(), drift.segments.last()) else { return };
    let pid = drift.pid.map_or_else(|| "-".to_owned(), |pid| pid.0.to_string());
    let name = text::truncate(&text::escape(&drift.label), page.width().saturating_sub(40).max(8));
    let launches = units::counted(drift.children, "launch", "launches");
    let (from, to) = (units::time(first.cost), units::time(last.cost));
    let bar = sparkline(drift.segments.iter().map(|segment| segment.cost));
    page.line([plain(format!("  {name} (pid {pid}), {launches}"))]);
    page.line([
        plain(format!("    from {from} ")),
        styled(FINDING, bar),
        plain(format!(" to {to}, {:.1} times", drift.ratio())),
    ]);
    page.sentence(4, PLAIN, &drift_cause(drift));
}

fn drift_cause(drift: &Drift) -> String {
    if let Some(growth) = &drift.memory {
        return format!(
            "grows with the parent's memory ({:.1} us per MB, {} to {}): a leak, or fork from a growing parent",
            growth.ns_per_mb / 1e3,
            units::bytes(growth.from_bytes),
            units::bytes(growth.to_bytes),
        );
    }
    let Some(rise) = &drift.rise else { return "no single phase explains the rise".to_owned() };
    let part = if rise.share >= 0.5 { "most" } else { "the largest part" };
    let phase = rise.phase.name();
    let is_memory_known = drift.segments.iter().all(|segment| segment.parent_rss_bytes.is_some());
    let memory = if is_memory_known { "" } else { "; the parent's memory is unknown" };
    format!("{part} of the rise is in {phase}: {}{memory}", words::phase_causes(rise.phase))
}

fn sparkline(costs: impl Iterator<Item = Nanos> + Clone) -> String {
    let highest = costs.clone().max().unwrap_or_default().0.max(1);
    costs.map(|cost| HEIGHTS[(cost.0 as usize * (HEIGHTS.len() - 1)) / highest as usize]).collect()
}

/// Prints what was lost, unsupported or cut off, so that the reader knows which figures to trust.
pub(super) fn print_limits(page: &mut Page, report: &Report) {
    let sentences = caveats(report);
    if sentences.is_empty() {
        return;
    }
    page.heading("Limits of these figures");
    for (style, sentence) in sentences {
        page.sentence(2, style, &sentence);
    }
}

/// Prints the caveats that make figures wrong. Returns the number of other caveats, which are not
/// printed.
pub(super) fn print_warnings(page: &mut Page, report: &Report) -> usize {
    let (warnings, notes): (Vec<_>, Vec<_>) = caveats(report).into_iter().partition(|(style, _)| *style == WARNING);
    for (style, sentence) in warnings {
        page.sentence(2, style, &sentence);
    }
    notes.len()
}

fn list_most_frequent(commands: &[(Vec<u8>, u64)]) -> String {
    const MAX_NAMED: usize = 4;
    let named = commands.iter().take(MAX_NAMED).map(|(command, count)| match count {
        1 => text::escape(command),
        several => format!("{} x {}", units::count(*several), text::escape(command)),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match commands.len().saturating_sub(MAX_NAMED) {
        0 => named,
        more => format!("{named} and {}", units::counted(more as u64, "other command", "other commands")),
    }
}

fn caveats(report: &Report) -> Vec<(anstyle::Style, String)> {
    let mut sentences = Vec::new();
    sentences.extend(lost_events(report).map(|sentence| (WARNING, sentence)));
    for kind in &report.info.contradictions.0 {
        let rows = units::count(kind.rows);
        sentences.push((
            WARNING,
            format!(
                "the recording contradicts itself ({}: {rows}, the first with id {}), so results about them are wrong",
                kind.what, kind.first_id
            ),
        ));
    }
    sentences.extend(unusual_end(report));
    if report.all.orphans > 0 {
        let orphans = units::counted(report.all.orphans, "launch", "launches");
        sentences.push((PLAIN, format!("{orphans} whose creation was not recorded: create and queue are unknown")));
    }
    if report.all.unfinished > 0 {
        let launches = units::counted(report.all.unfinished, "launch", "launches");
        sentences.push((
            PLAIN,
            format!(
                "{launches} still running at the end of the recording, counted up to then: {}",
                list_most_frequent(&report.still_running)
            ),
        ));
    }
    for missing in &report.info.missing {
        sentences.push((PLAIN, text::escape(missing.to_string().as_bytes())));
    }
    sentences
}

fn lost_events(report: &Report) -> Option<String> {
    let kinds = report.info.lost.iter().map(|loss| format!("{}: {}", loss.kind, units::count(loss.events)));
    let kinds = text::escape(kinds.collect::<Vec<_>>().join(", ").as_bytes());
    let events = units::counted(report.lost_events(), "event", "events");
    let sentence = format!("lost: {events} ({kinds}), so launches, phases or waits are missing");
    (report.lost_events() > 0).then_some(sentence)
}

/// Describes the end of the recording, unless it ended as planned.
fn unusual_end(report: &Report) -> Option<(anstyle::Style, String)> {
    Some(match report.info.ended.as_deref() {
        None if report.info.is_live => {
            (PLAIN, "still being recorded: figures include everything up to the last batch".to_owned())
        }
        None => (WARNING, "the recorder did not finish: the recording ends with the last stored batch".to_owned()),
        Some(why) if why.starts_with("failed") => (WARNING, format!("the recording {}", text::escape(why.as_bytes()))),
        Some("interrupted") => (PLAIN, "the recording was interrupted".to_owned()),
        Some(_) => return None,
    })
}

pub(super) fn print_repeats(page: &mut Page, report: &Report) {
    if report.repeats.is_empty() {
        return;
    }
    page.heading("Repeated command lines");
    for repeat in &report.repeats {
        let count = text::pad_left(&units::count(repeat.count), 8);
        let total = text::pad_left(&units::time(repeat.total), 10);
        let available = page.width().saturating_sub(25);
        let label: &[u8] = if repeat.label.is_empty() { b"(without arguments)" } else { &repeat.label };
        let line = text::abridge(&text::escape(label), available);
        page.line([plain(format!("  {count} x{total}   {line}"))]);
    }
    page.sentence(2, QUIET, "the same arguments in the same directory; the time is summed over the launches");
}

/// Maximum number of kinds, and of causes of each, that are shown.
const MAX_KINDS: usize = 4;
const MAX_CAUSES: usize = 5;

pub(super) fn print_tool_calls(page: &mut Page, kinds: &[ToolCalls]) {
    if kinds.is_empty() {
        return;
    }
    page.heading("Commands through a shell, until their own exec");
    for kind in kinds.iter().take(MAX_KINDS) {
        let [median, high, max] = kind.delay.map(units::time);
        let caller = text::escape(&kind.caller);
        let shape = text::escape(kind.shape.as_bytes());
        let count = units::count(kind.count as u64);
        let sentence = format!(
            "{caller} starts {count} commands with `{shape}`; each is executed after {median} (median; 95 % within {high}, at most {max})"
        );
        page.hanging([plain("  ")], PLAIN, &sentence);
        for cause in kind.causes.iter().take(MAX_CAUSES) {
            let time = text::pad_left(&units::time(cause.time), 11);
            let others =
                if cause.calls == kind.count { String::new() } else { format!("  ({} commands)", cause.calls) };
            let before = if cause.reason == Reason::Hook { "before it: " } else { "" };
            let label = text::truncate(&text::escape(&cause.label), page.width().saturating_sub(15));
            page.line([plain(format!("  {time}  {before}{label}")), styled(QUIET, others)]);
        }
        let fixes = fixes(kind).join(", ");
        if !fixes.is_empty() {
            page.sentence(4, PLAIN, &format!("-> {fixes}"));
        }
    }
}

const MAX_EPISODES: usize = 5;
/// Minimum width of the number and the name of a process, in columns.
const EPISODE_NAME_WIDTH: usize = 15;
const EPISODE_TITLE: &str = "   process";
const EPISODE_FIGURES: [Column; 4] =
    [column("start", 11, 4), column("length", 11, 3), column("launches", 10, 1), column("start-up", 11, 2)];

pub(super) fn print_busiest(page: &mut Page, report: &Report, file: Option<&str>) {
    if report.episodes.is_empty() {
        return;
    }
    page.heading("Busiest episodes");
    let shown = &report.episodes[..report.episodes.len().min(MAX_EPISODES)];
    let rows: Vec<Vec<String>> = shown.iter().map(episode_figures).collect();
    let labels = shown.iter().map(|episode| process_label(&episode.label, episode.pid));
    let names: Vec<String> = (1..).zip(labels).map(|(number, label)| format!("{number}. {label}")).collect();
    let columns = Columns::fit(page.width().saturating_sub(2 + EPISODE_NAME_WIDTH), &EPISODE_FIGURES, &rows);
    let name_width = columns.name_width(page.width(), text::widest(&names, EPISODE_TITLE));
    page.table(EPISODE_TITLE, &names, name_width, &columns, &rows);
    let others = report.episodes.len() - shown.len();
    let others = if others > 0 {
        format!("… {}. ", units::counted(others as u64, "more episode", "more episodes"))
    } else {
        String::new()
    };
    page.sentence(2, QUIET, &format!("{others}To explain one:"));
    page.command(2, &format!("spawnscope advise --episode 1{}", argument(file)));
}

fn episode_figures(episode: &Episode) -> Vec<String> {
    vec![
        units::time(episode.span.from),
        units::time(episode.span.to.since(episode.span.from)),
        units::count(episode.launches),
        units::time(episode.tax),
    ]
}
