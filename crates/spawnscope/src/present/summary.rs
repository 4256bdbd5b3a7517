//! The report on one screen: 24 lines of 80 columns, including the prompt or the last line of `record`, unless the recording needs
//! warnings. `table` has the full report.

use super::page::{Page, plain, styled};
use super::palette::{self, PLAIN, QUIET, TITLE};
use super::verdict;
use super::{advice, episodes, findings, table, text, units, words};
use crate::analyze::explain::advice::{Advice, AdviceList, Rejection};
use crate::analyze::explain::report::Report;
use crate::analyze::model::phases::Phase;
use crate::analyze::path::groups::Group;
use crate::analyze::path::summary::PhaseSum;
use crate::analyze::predict::dependence::culprit;
use crate::event::Nanos;

/// Number of lines for the report: those of a screen, minus one for the prompt or the last line of `record`.
const LINES: usize = 23;
/// Maximum rows of the table of commands, if the screen has room.
const MAX_COMMANDS: usize = 5;
/// The legend of the table is printed only if the screen has room for it below this many rows.
const MIN_COMMANDS: usize = 2;
/// The bar is printed only if the launch tax is at least this share of the wall.
const MIN_TAX_SHARE: f64 = 0.01;
/// Says what the shares of the phases are of, since all others are of the wall.
const OF_THE_TAX: &str = "  of the launch tax:";
/// Width of a saving, in columns.
const SAVING_WIDTH: usize = 9;

/// Renders the summary. `file` is the recording as the user must type it; `None` means the default file.
#[must_use]
pub fn render(report: &Report, width: usize, file: Option<&str>) -> String {
    let above = render_above_table(report, width);
    let below = render_below_table(report, width, file);
    // The heading of the table and the empty line before it take two lines.
    let used_lines = above.lines().count() + below.lines().count() + 2;
    let available = LINES.saturating_sub(used_lines).clamp(1, MAX_COMMANDS + 1);
    let has_dependence = report.groups.iter().take(available).any(|group| group.depends.is_some());
    let has_legend = has_dependence && available > MIN_COMMANDS.min(report.groups.len());
    let rows = (available - usize::from(has_legend)).min(MAX_COMMANDS).min(report.groups.len());
    let mut shown = rows_with_culprit(report, rows);
    let names = words::explain_parentheses(shown.iter().map(|group| group.label.as_slice()));
    // The meaning of a name has priority over rows after the second one.
    let room = available - usize::from(has_legend);
    shown.truncate(room.saturating_sub(names.len()).max(2));
    let mut page = Page::of_width(width);
    if rows > 0 {
        page.line([]);
        table::print_table(&mut page, &shown, "command");
        let legend = has_legend.then_some(table::SHORT_LEGEND);
        for note in legend.into_iter().chain(names.iter().map(String::as_str)) {
            page.sentence(2, QUIET, note);
        }
    }
    above + &page.finish() + &below
}

/// Returns the first rows of the table. If these lack the command that the verdict names, it replaces the last one.
fn rows_with_culprit(report: &Report, rows: usize) -> Vec<Group> {
    let mut shown = report.groups[..rows].to_vec();
    if let Some(culprit) = culprit(&report.dependence, report.advices.unrecorded) {
        let later = report.groups[rows..].iter().find(|group| group.label == culprit.label);
        if let (Some(last), Some(group)) = (shown.last_mut(), later) {
            last.clone_from(group);
        }
    }
    shown
}

fn render_above_table(report: &Report, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.line([styled(TITLE, table::title(report, width))]);
    for sentence in verdict::sentences(report).unwrap_or_default() {
        page.sentence(2, TITLE, &sentence);
    }
    page.line([]);
    page.sentence(2, PLAIN, &totals(report));
    let tax = report.all.tax.unwrap_or_default();
    if tax.0 as f64 >= MIN_TAX_SHARE * report.wall.0 as f64 && report.all.count > 0 {
        table::print_bar(&mut page, report);
        print_legend(&mut page, report);
    }
    page.finish()
}

/// Returns the number of CPUs, and how many of them the command was allowed to use if not all.
pub(super) fn cpus(report: &Report) -> String {
    let all = units::counted(u64::from(report.info.cpus), "CPU", "CPUs");
    match report.info.allowed_cpus.filter(|allowed| *allowed < f64::from(report.info.cpus)) {
        Some(allowed) => format!("{} of {all} allowed", (10.0 * allowed).round() / 10.0),
        None => all,
    }
}

/// Returns the sums over all launches, in one sentence.
pub(super) fn totals(report: &Report) -> String {
    let all = &report.all;
    let wall = match () {
        () if report.info.is_live => "so far",
        () if report.is_cut_off() => "up to the last stored batch",
        () => "wall",
    };
    let mut totals = vec![
        format!("{} {wall}", units::time(report.wall)),
        cpus(report),
        units::counted(all.count, "launch", "launches"),
    ];
    if all.forks_without_exec > 0 {
        totals.push(units::counted(all.forks_without_exec, "fork without exec", "forks without exec"));
    }
    if all.failed_execs > 0 {
        totals.push(units::counted(all.failed_execs, "failed exec", "failed execs"));
    }
    totals.extend(tax_and_critical(report));
    totals.join(", ")
}

/// Returns the launch tax, and how much of it is on the critical path. Without wakers, the reconstructed path contains phases whose times are
/// unknown.
fn tax_and_critical(report: &Report) -> Vec<String> {
    let Some(tax) = report.all.tax else { return Vec::new() };
    let tax = units::time(tax);
    let least = if is_tax_partial(report) { "at least " } else { "" };
    let Some(critical) = report.all.critical_tax else {
        let unknown =
            (!report.info.sees_scheduler()).then(|| "how much of it is on the critical path is unknown".to_owned());
        return [format!("launch tax {least}{tax}")].into_iter().chain(unknown).collect();
    };
    let critical = units::time(critical);
    if report.is_reconstructed {
        // The second time may be larger than the first one.
        vec![format!("launch tax {least}{tax} without unknown phases"), format!("{critical} critical with them")]
    } else {
        vec![format!("launch tax {least}{tax} ({critical} critical)")]
    }
}

/// Whether the launch tax is a lower bound: collectors that do not record the scheduler do not record some phases.
pub(super) fn is_tax_partial(report: &Report) -> bool {
    !report.info.sees_scheduler()
}

/// Returns the time of a phase. `None` if it is unknown for all launches but one, such as the command, or for nearly all: the known ones are not
/// representative.
pub(super) fn phase_time(sum: PhaseSum) -> Option<Nanos> {
    let is_mostly_unknown = sum.unknown > 0 && (sum.known <= 1 || sum.known < sum.unknown / 10);
    sum.time.filter(|_| !is_mostly_unknown)
}

/// Prints the phases and their shares of the launch tax, in as many lines as they need.
fn print_legend(page: &mut Page, report: &Report) {
    let mut spans = vec![styled(QUIET, OF_THE_TAX.to_owned())];
    let mut used = text::width(OF_THE_TAX);
    for phase in Phase::TAX {
        let sum = report.all.phases.get(phase);
        let time = phase_time(sum);
        if time.is_none() && sum.unknown == 0 {
            continue;
        }
        let (style, glyph) = palette::phase_style(phase);
        let words = format!(" {} {}", phase.name(), units::percent(time, report.all.tax));
        let columns = 3 + text::width(&words);
        if used + columns > page.width() {
            page.line(std::mem::take(&mut spans));
            used = 0;
        }
        used += columns;
        spans.extend([plain("  "), styled(style, glyph.to_string()), plain(words)]);
    }
    page.line(spans);
}

/// Prints warnings in full, and how many notes the full report has.
pub(super) fn print_warnings_and_note_count(page: &mut Page, report: &Report) {
    let notes = findings::print_warnings(page, report);
    if notes > 0 {
        let notes = units::counted(notes as u64, "note", "notes");
        let sentence = format!("{notes} about these figures: see --full");
        page.sentence(2, QUIET, &sentence);
    }
}

/// Returns the first pieces of advice, without any that mostly covers the launches of an earlier one: both together would save little more
/// than one.
fn distinct_advice(advices: &[Advice]) -> Vec<&Advice> {
    let mut chosen: Vec<&Advice> = Vec::new();
    for advice in advices {
        if chosen.len() == advice::MAX_IN_REPORT {
            break;
        }
        if !chosen.iter().any(|other| has_same_launches(other, advice)) {
            chosen.push(advice);
        }
    }
    chosen
}

/// Whether more than half of the launches of the larger one also belong to the other one.
fn has_same_launches(one: &Advice, other: &Advice) -> bool {
    let (one, other) = (&one.finding.launches, &other.finding.launches);
    let common = one.iter().filter(|launch| other.binary_search(launch).is_ok()).count();
    2 * common > one.len().max(other.len())
}

fn render_below_table(report: &Report, width: usize, file: Option<&str>) -> String {
    let mut page = Page::of_width(width);
    let AdviceList { worth: advices, not_worth, .. } = &episodes::report_to_explain(report).advices;
    // The verdict has the first one.
    let others = distinct_advice(advices).split_off(advices.len().min(1));
    if !others.is_empty() {
        page.line([]);
        page.sentence(2, PLAIN, "Other changes, and what each saves:");
    }
    for advice in others {
        let saving = text::pad_left(&units::time(advice.saving[0]), SAVING_WIDTH);
        let title = text::escape(advice.finding.title.as_bytes());
        page.hanging([plain(format!("  {saving}  "))], PLAIN, &title);
    }
    page.line([]);
    print_warnings_and_note_count(&mut page, report);
    let file = table::argument(file);
    let is_uncertain = not_worth.iter().any(|(doubt, _)| *doubt == Rejection::Uncertain);
    match advices.is_empty() {
        false => page.command(2, &format!("spawnscope advise{file}")),
        true if is_uncertain => page.command(2, &format!("spawnscope advise --all{file}")),
        true => (),
    }
    page.command(2, &format!("spawnscope report --full{file}"));
    page.finish()
}
