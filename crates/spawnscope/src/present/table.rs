//! The full report for the terminal: headline, distribution of the launch tax, table of programs.
//! `findings` adds the rest. Returns styled text of limited width; the caller strips the styles if
//! needed.

use anstyle::Style;

use super::groupings::{Grouping, grouping_of};
use super::headline::{self, argument, title};
use super::page::{Column, Columns, PLAIN, Page, QUIET, TITLE, WARNING, column, phase_style, plain, styled};
use super::{critical, findings, summary, text, units, verdict, words};
use crate::analyze::explain::report::{GroupBy, Report, Spent};
use crate::analyze::model::external_wait::ExternalWait;
use crate::analyze::model::phases::Phase;
use crate::analyze::path::groups::{Group, THE_RECORDER};
use crate::analyze::path::summary::PhaseSum;
use crate::event::Nanos;

/// Layout options of the report.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub width: usize,
    /// Maximum rows of the table of programs; `None` shows all.
    pub top: Option<usize>,
    /// The recording, quoted for the shell, for commands that the report prints; `None` means the
    /// default file.
    pub file: Option<&'a str>,
}

pub const DEFAULT_TOP: usize = 15;

impl Default for Options<'_> {
    fn default() -> Self {
        Options { width: 80, top: Some(DEFAULT_TOP), file: None }
    }
}

/// Minimum width of the name of a program, in columns. Columns of figures are dropped to keep this
/// width.
const NAME_WIDTH: usize = 11;
/// Minimum width of arguments and of labels, if they are that wide. Columns of figures are dropped
/// to keep this width.
const ARGUMENTS_WIDTH: usize = 40;
/// Minimum width of subcommands, if they are that wide.
const SUBCOMMAND_WIDTH: usize = 24;
/// Width of the glyph and the name of a phase in the legend, in columns.
const PHASE_WIDTH: usize = 13;

const FAILED: Column = column("failed execs", 13, 1);
/// The last column with a short title, if `FAILED` does not fit. The legend explains it.
const FAILED_SHORT: Column = column("failed", 7, 1);

const FIGURES: [Column; 8] = [
    column("count", 7, 8),
    column("saved", 9, 7),
    column("total", 9, 4),
    column("mean", 9, 3),
    column("start-up", 9, 6),
    column("critical", 9, 5),
    column("largest phase", 17, 2),
    FAILED,
];

/// Index of the column `saved`, which is omitted if it is unknown for all rows.
const SAVED_COLUMN: usize = 1;

/// Explains the column `saved` of the full table.
const SAVED_LEGEND: &str = "saved: how much shorter the wall time would be without these launches and the waits for them; predicted for at most eight programs";

const PHASE_FIGURES: [Column; 4] =
    [column("total", 12, 4), column("share", 12, 3), column("mean", 12, 2), column("cpu", 12, 1)];

pub fn render_table(report: &Report, options: &Options<'_>) -> String {
    let mut page = Page::of_width(options.width);
    page.line([styled(TITLE, title(report, page.width()))]);
    page.sentence(2, PLAIN, &headline::totals(report));
    if report.all.count > 0 {
        print_groups(&mut page, report, options);
    }
    summary::print_warnings_and_note_count(&mut page, report);
    page.finish()
}

pub fn render(report: &Report, options: &Options<'_>) -> String {
    let mut page = Page::of_width(options.width);
    print_headline(&mut page, report);
    if report.all.count > 0 {
        print_phases(&mut page, report);
        print_groups(&mut page, report, options);
        critical::print_critical_path(&mut page, report);
        critical::print_waits(&mut page, report);
        print_advice(&mut page, report, options.file);
        findings::print_busiest(&mut page, report, options.file);
    }
    findings::print_tool_calls(&mut page, &report.tool_calls);
    findings::print_repeats(&mut page, report);
    findings::print_path_searches(&mut page, report);
    findings::print_failures(&mut page, report);
    findings::print_drifts(&mut page, report);
    findings::print_labels(&mut page, report);
    findings::print_limits(&mut page, report);
    page.finish()
}

fn print_advice(page: &mut Page, report: &Report, file: Option<&str>) {
    if headline::report_to_explain(report).advices.worth.is_empty() {
        return;
    }
    page.heading("What to change");
    summary::print_advice(page, report, summary::DETAILS[0]);
    page.sentence(2, QUIET, "For details and all advice:");
    page.command(2, &format!("spawnscope advise{}", argument(file)));
}

fn print_headline(page: &mut Page, report: &Report) {
    page.line([styled(TITLE, title(report, page.width()))]);
    let cpus = headline::cpus(report).map_or_else(String::new, |cpus| format!("{cpus}, "));
    page.line([styled(QUIET, format!("  {cpus}recorded with {}", text::escape(report.info.collector.as_bytes())))]);
    page.line([]);
    if let Some(sentences) = verdict::sentences(report) {
        sentences.iter().for_each(|sentence| page.sentence(2, TITLE, sentence));
        page.line([]);
    }
    let all = &report.all;
    print_fact(page, "wall", &units::time(report.wall), headline::wall_note(report).trim_start());
    print_fact(page, "launches", &units::count(all.count), "");
    print_fact(page, "forks without exec", &units::count(all.forks_without_exec), "");
    print_fact(page, "failed execs", &units::count(all.failed_execs), "");
    if all.count > 0 {
        let name = match headline::is_tax_partial(report) {
            true => "start-up, at least",
            false => "start-up",
        };
        print_fact(page, name, &units::time(all.tax), &tax_note(report));
        if let Some(tax) = all.critical_tax {
            let share = units::percent(tax, report.wall);
            let unknown = match report.is_reconstructed {
                true => ", including unknown phases",
                false => "",
            };
            let note = format!("{share} of the wall time (start-up on the critical path{unknown})");
            print_fact(page, "critical start-up", &units::time(tax), &note);
        }
    } else {
        page.sentence(2, PLAIN, "no launches");
    }
    if report.lost_events() > 0 {
        let events = units::count(report.lost_events());
        print_styled_fact(page, [WARNING; 2], "events lost", &events, "counts and times are too low");
    }
}

/// Relates the tax to the wall. A sum over overlapping launches is not a part of the wall: it can
/// be many times as long.
fn tax_note(report: &Report) -> String {
    let tax = report.all.tax.unwrap_or_default();
    let sum = "over all launches";
    if tax > report.wall && report.wall.0 > 0 {
        return format!("{:.1} times the wall time, {sum}", tax.0 as f64 / report.wall.0 as f64);
    }
    let share = units::percent(report.all.tax, report.wall);
    if report.overlaps {
        format!("{share} of the wall time, {sum}")
    } else {
        format!("{share} of the wall time (all phases but run)")
    }
}

fn print_fact(page: &mut Page, name: &str, figure: &str, note: &str) {
    print_styled_fact(page, [PLAIN, TITLE], name, figure, note);
}

fn print_styled_fact(page: &mut Page, [name_style, figure_style]: [Style; 2], name: &str, figure: &str, note: &str) {
    let name = styled(name_style, format!("  {name:<20}"));
    let figure = styled(figure_style, text::pad_left(figure, 12));
    page.hanging([name, figure, plain("   ")], name_style, note);
}

/// Prints the bar of the launch tax. It omits `run`, because the root's own run phase would hide
/// all other phases.
fn print_bar(page: &mut Page, report: &Report) {
    let times: Vec<(Phase, Nanos)> =
        Phase::TAX.into_iter().filter_map(|phase| Some((phase, phase_time(report.all.phases.get(phase))?))).collect();
    let cells = share_cells(&times, page.width().saturating_sub(4));
    if !cells.is_empty() {
        let segments = cells.into_iter().map(|(phase, cells)| {
            let (style, glyph) = phase_style(phase);
            styled(style, glyph.to_string().repeat(cells))
        });
        page.line(std::iter::once(plain("  ")).chain(segments));
    }
}

fn print_phases(page: &mut Page, report: &Report) {
    page.heading("Where the start-up time goes");
    print_bar(page, report);
    print_legend(page, report);
    let all = &report.all;
    let unknown = all.phases.iter().filter(|(_, sum)| sum.unknown > 0);
    let unknown = unknown.map(|(phase, sum)| format!("{} for {}", phase.name(), units::count(sum.unknown)));
    let unknown: Vec<String> = unknown.collect();
    if !unknown.is_empty() {
        let launches = units::counted(all.count, "launch", "launches");
        page.sentence(2, QUIET, &format!("unknown: {} of {launches}", unknown.join(", ")));
    }
}

fn print_legend(page: &mut Page, report: &Report) {
    let phases: Vec<Phase> = Phase::TAX.into_iter().chain([Phase::Run]).collect();
    let rows: Vec<Vec<String>> = phases.iter().map(|phase| phase_figures(report, *phase)).collect();
    let columns = Columns::fit(page.width().saturating_sub(PHASE_WIDTH), &PHASE_FIGURES, &rows);
    let titles = columns.titles();
    page.line([styled(QUIET, format!("    {:<9}{titles}", "phase"))]);
    for (phase, figures) in phases.iter().zip(&rows) {
        let (style, glyph) = phase_style(*phase);
        page.line([
            plain("  "),
            styled(style, glyph.to_string()),
            plain(format!(" {:<9}{}", phase.name(), columns.row(figures))),
        ]);
    }
    page.sentence(2, QUIET, "run includes time spent waiting for children; its CPU time does not");
}

/// Returns the time of a phase. `None` if it is unknown for all launches but one, such as the
/// command, or for nearly all: the known ones are not representative.
fn phase_time(sum: PhaseSum) -> Option<Nanos> {
    let is_mostly_unknown = sum.unknown > 0 && (sum.known <= 1 || sum.known < sum.unknown / 10);
    sum.time.filter(|_| !is_mostly_unknown)
}

fn phase_figures(report: &Report, phase: Phase) -> Vec<String> {
    let sum = report.all.phases.get(phase);
    let time = phase_time(sum);
    let share = match phase {
        Phase::Run => String::new(),
        _ => units::percent(time, report.all.tax),
    };
    let mean = time.and(sum.mean());
    let cpu = units::time(report.all.cpu_phases.get(phase).time);
    vec![units::time(time), share, units::time(mean), cpu]
}

/// Divides `width` cells in proportion to the times. The largest remainders are rounded up, so that
/// the sum is exact.
fn share_cells(times: &[(Phase, Nanos)], width: usize) -> Vec<(Phase, usize)> {
    let total: u128 = times.iter().map(|(_, time)| u128::from(time.0)).sum();
    if total == 0 {
        return Vec::new();
    }
    let shares: Vec<u128> = times.iter().map(|(_, time)| u128::from(time.0) * width as u128).collect();
    let mut cells: Vec<(Phase, usize)> =
        times.iter().zip(&shares).map(|((phase, _), share)| (*phase, (share / total) as usize)).collect();
    let mut by_remainder: Vec<usize> = (0..times.len()).collect();
    by_remainder.sort_by_key(|index| std::cmp::Reverse(shares[*index] % total));
    let left_over = width - cells.iter().map(|(_, cells)| cells).sum::<usize>();
    for index in by_remainder.into_iter().take(left_over) {
        cells[index].1 += 1;
    }
    cells
}

fn print_groups(page: &mut Page, report: &Report, options: &Options<'_>) {
    let grouping = grouping_of(report.group_by);
    page.heading(&format!("Launches by {}", grouping.heading));
    let count = options.top.unwrap_or(report.groups.len()).min(report.groups.len());
    let (shown, rest) = report.groups.split_at(count);
    if matches!(report.group_by, GroupBy::Line | GroupBy::Caller) {
        print_rows_of_callers(page, report, shown);
        print_omitted(page, rest, report.group_by, options.file);
        return;
    }
    let is_abbreviated = print_table(page, shown, grouping);
    print_omitted(page, rest, report.group_by, options.file);
    print_groups_legend(page, report, shown);
    if is_abbreviated {
        page.sentence(2, QUIET, "failed: number of failed execs");
    }
}

/// Prints the table of programs. Returns whether its last column has the short title.
fn print_table(page: &mut Page, groups: &[Group], &Grouping { by, column, .. }: &Grouping) -> bool {
    let mut rows: Vec<Vec<String>> = groups.iter().map(group_figures).collect();
    let mut figures = FIGURES.to_vec();
    if groups.iter().all(|group| group.depends.is_none()) {
        figures.remove(SAVED_COLUMN);
        rows.iter_mut().for_each(|row| drop(row.remove(SAVED_COLUMN)));
    }
    let mut names: Vec<String> = groups.iter().map(|group| text::escape(&group.label)).collect();
    let widest = text::widest(&names, column);
    let min_name_width = match by {
        GroupBy::Arguments | GroupBy::Label(_) => ARGUMENTS_WIDTH.min(widest),
        GroupBy::Subcommand => SUBCOMMAND_WIDTH.min(widest),
        _ => NAME_WIDTH,
    };
    let available = page.width().saturating_sub(2 + min_name_width);
    let is_abbreviated = !Columns::fit(available, &figures, &rows).has(FAILED.title);
    if is_abbreviated && let Some(last) = figures.last_mut() {
        *last = FAILED_SHORT;
    }
    let columns = Columns::fit(available, &figures, &rows);
    let name_width = columns.name_width(page.width(), widest);
    if by == GroupBy::Arguments {
        names.iter_mut().for_each(|name| *name = text::abridge(name, name_width));
    }
    page.table(column, &names, name_width, &columns, &rows);
    columns.has(FAILED_SHORT.title)
}

fn print_groups_legend(page: &mut Page, report: &Report, shown: &[Group]) {
    if shown.iter().any(|group| group.depends.is_some()) {
        page.sentence(2, QUIET, SAVED_LEGEND);
    }
    if report.all.critical.is_some() {
        let columns = "start-up: all phases but run; critical: time on the critical path, including run";
        page.sentence(2, QUIET, columns);
    }
    if matches!(report.group_by, GroupBy::Label(_)) && shown.iter().any(|group| group.label == b"-") {
        page.sentence(2, QUIET, "-: launches for which this label is unknown");
    }
    for meaning in words::explain_parentheses(shown.iter().map(|group| group.label.as_slice())) {
        page.sentence(2, QUIET, &meaning);
    }
}

fn group_figures(group: &Group) -> Vec<String> {
    let sums = &group.sums;
    let largest = sums.phases.largest().map(|(phase, time)| {
        let total = sums.phases.iter().filter_map(|(_, sum)| sum.time).map(|time| time.0).sum();
        format!("{} {}", phase.name(), units::percent(time, Nanos(total)))
    });
    vec![
        units::count(sums.count),
        units::time(group.depends),
        units::time((sums.timed > 0).then_some(sums.total)),
        units::time(sums.mean()),
        units::time(sums.tax),
        units::time(sums.critical),
        largest.unwrap_or_else(|| "-".to_owned()),
        units::count(sums.failed_execs),
    ]
}

fn print_omitted(page: &mut Page, groups: &[Group], group_by: GroupBy, file: Option<&str>) {
    if groups.is_empty() {
        return;
    }
    let launches: u64 = groups.iter().map(|group| group.sums.count).sum();
    let tax = groups.iter().filter_map(|group| group.sums.tax).map(|tax| tax.0).sum();
    let more = units::counted(groups.len() as u64, "more row", "more rows");
    let launches = units::counted(launches, "launch", "launches");
    let tax = units::time(Nanos(tax));
    let by = grouping_of(group_by).name;
    page.sentence(2, QUIET, &format!("… {more}: {launches}, start-up {tax}. To print all:"));
    page.command(2, &format!("spawnscope report --by {by} --top 0{}", argument(file)));
}

const MAX_PROGRAMS: usize = 2;

/// Prints the rows of a report by line or function, one sentence each.
fn print_rows_of_callers(page: &mut Page, report: &Report, groups: &[Group]) {
    for group in groups {
        let label = text::escape(&group.label);
        let style = if group.call_site.is_some() { TITLE } else { PLAIN };
        let facts = group_facts(group, report);
        let width = page.width().saturating_sub(2);
        if text::width(&label) + 2 + text::width(&facts) <= width {
            page.line([plain("  "), styled(style, format!("{label}:")), plain(format!(" {facts}"))]);
        } else {
            page.line([plain("  "), styled(style, format!("{}:", text::truncate(&label, width.saturating_sub(1))))]);
            page.sentence(6, PLAIN, &facts);
        }
    }
    let share = match report.all.critical {
        Some(_) if report.where_the_wall_went.iter().any(|(what, _)| is_outside(what)) => {
            "; the share includes what they launch, without sleeps and other external waits"
        }
        Some(_) => "; the share includes what they launch",
        None => "",
    };
    let legend = format!("in all: the wall time of the launches, summed{share}");
    page.sentence(2, QUIET, &legend);
    let labels = groups.iter().flat_map(|group| {
        let launched = group.launched.iter().take(MAX_PROGRAMS).map(|(label, _)| label.as_slice());
        launched.chain((group.label == THE_RECORDER).then_some(group.label.as_slice()))
    });
    for meaning in words::explain_parentheses(labels) {
        page.sentence(2, QUIET, &meaning);
    }
    if report.groups.iter().all(|group| group.call_site.is_none()) {
        page.sentence(2, QUIET, "this recording does not contain call sites");
    }
}

fn is_outside(what: &Spent) -> bool {
    matches!(what, Spent::ExternalWait(what, _) if *what != ExternalWait::Recorder)
}

/// Formats a group's launches, time and share: `71,000 x dirname, 512 s in all, 84.0 % of the
/// critical path`.
fn group_facts(group: &Group, report: &Report) -> String {
    let mut facts: Vec<String> = group
        .launched
        .iter()
        .take(MAX_PROGRAMS)
        .map(|(command, count)| format!("{} x {}", units::count(*count), text::escape(command)))
        .collect();
    let more: u64 = group.launched.iter().skip(MAX_PROGRAMS).map(|(_, count)| count).sum();
    if more > 0 {
        facts.push(format!("{} more", units::count(more)));
    }
    facts.push(format!("{} in all", units::time(group.inclusive.total)));
    if let Some(critical) = group.inclusive.critical {
        facts.push(format!("{} of the critical path", units::percent(critical, report.wall)));
    }
    facts.join(", ")
}
