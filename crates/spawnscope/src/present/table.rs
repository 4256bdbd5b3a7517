//! The report for the terminal: headline, where the launch tax goes, the table of programs; `findings` adds the rest.
//! Returns styled text of limited width; the caller strips the styles where they are not wanted.

use super::page::{Page, Span, plain, styled};
use super::palette::{self, PLAIN, QUIET, TITLE, WARNING};
use super::{findings, text, units};
use crate::analyze::phases::Phase;
use crate::analyze::report::{Group, GroupBy, Report};
use crate::event::Nanos;

/// How the report is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Columns of the terminal.
    pub width: usize,
    /// Rows of the table of programs; `None` shows all.
    pub top: Option<usize>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            width: 80,
            top: Some(20),
        }
    }
}

/// Columns of figures in the table of programs, the program itself excepted.
const FIGURES: [(&str, usize); 6] = [
    ("count", 9),
    ("total", 9),
    ("mean", 9),
    ("tax", 9),
    ("largest phase", 17),
    ("failed", 8),
];

/// The whole report as text.
#[must_use]
pub fn render(report: &Report, options: &Options) -> String {
    let mut page = Page::of_width(options.width);
    headline(&mut page, report);
    if report.all.count > 0 {
        phases(&mut page, report);
        groups(&mut page, report, options.top);
    }
    findings::path_searches(&mut page, report);
    findings::drifts(&mut page, report);
    findings::reservations(&mut page, report);
    page.finish()
}

fn headline(page: &mut Page, report: &Report) {
    page.line([styled(TITLE, title(report, page.width()))]);
    let cpus = units::counted(u64::from(report.cpus), "CPU", "CPUs");
    page.line([styled(
        QUIET,
        format!("  {cpus}, recorded with {}", text::escape(report.collector.as_bytes())),
    )]);
    page.line([]);
    let all = &report.all;
    let share = units::percent(all.tax, report.wall);
    fact(
        page,
        "wall",
        &units::time(report.wall),
        if report.is_cut_off() {
            "up to the last stored event"
        } else {
            ""
        },
    );
    fact(page, "launches", &units::count(all.count), "");
    fact(page, "forks without exec", &units::count(all.forks_without_exec), "");
    fact(page, "failed execs", &units::count(all.failed_execs), "");
    fact(
        page,
        "launch tax",
        &units::time(all.tax),
        &format!("{share} of the wall: all phases but run"),
    );
    if report.lost_events() > 0 {
        let figure = text::pad_left(&units::count(report.lost_events()), 12);
        page.line([styled(
            WARNING,
            format!("  {:<20}{figure}   counts and times are too small", "events lost"),
        )]);
    }
}

fn title(report: &Report, width: usize) -> String {
    if !report.command.is_empty() {
        return text::command_line(report.command.iter().map(Vec::as_slice), Some(width));
    }
    match &report.followed {
        Some((pid, name)) => format!("launches by process {} ({}) and below", pid.0, text::escape(name)),
        None => "launches on this machine".to_owned(),
    }
}

fn fact(page: &mut Page, name: &str, figure: &str, note: &str) {
    let figure = text::pad_left(figure, 12);
    page.line([
        plain(format!("  {name:<20}")),
        styled(TITLE, figure),
        plain(format!("   {note}")),
    ]);
}

/// The bar of the launch tax and its legend. `run` stands apart: beside the root's own work nothing else would show.
fn phases(page: &mut Page, report: &Report) {
    page.heading("Where the launch tax goes");
    let all = &report.all;
    let times: Vec<(Phase, Nanos)> = Phase::TAX
        .into_iter()
        .filter_map(|phase| Some((phase, all.phases.get(phase).time?)))
        .collect();
    let cells = share_cells(&times, page.width().saturating_sub(4));
    if !cells.is_empty() {
        let segment = |(phase, cells): (Phase, usize)| {
            let (style, glyph) = palette::of_phase(phase);
            styled(style, glyph.to_string().repeat(cells))
        };
        page.line(std::iter::once(plain("  ")).chain(cells.into_iter().map(segment)));
    }
    page.line([styled(
        QUIET,
        "    phase           total       share        mean         cpu",
    )]);
    for phase in Phase::TAX.into_iter().chain([Phase::Run]) {
        page.line(legend_line(report, phase));
    }
    let unknown = all.phases.iter().filter(|(_, sum)| sum.unknown > 0);
    let unknown = unknown.map(|(phase, sum)| format!("{} for {}", phase.name(), units::count(sum.unknown)));
    let unknown: Vec<String> = unknown.collect();
    if !unknown.is_empty() {
        let of = units::counted(all.count, "launch", "launches");
        page.sentence(2, QUIET, &format!("unknown: {} of {of}", unknown.join(", ")));
    }
}

fn legend_line(report: &Report, phase: Phase) -> Vec<Span> {
    let (style, glyph) = palette::of_phase(phase);
    let sum = report.all.phases.get(phase);
    let is_tax = phase != Phase::Run;
    let share = if is_tax {
        units::percent(sum.time, report.all.tax)
    } else {
        String::new()
    };
    let cpu = units::time(report.all.cpu_phases.get(phase).time);
    let figures = [units::time(sum.time), share, units::time(sum.mean()), cpu];
    let figures: String = figures.iter().map(|figure| text::pad_left(figure, 12)).collect();
    let note = if is_tax { "" } else { "  the work itself" };
    vec![
        plain("  "),
        styled(style, glyph.to_string()),
        plain(format!(" {:<9}{figures}", phase.name())),
        styled(QUIET, note),
    ]
}

/// Divides `width` cells by the shares of the times, so that their sum is exact: by largest remainder.
fn share_cells(times: &[(Phase, Nanos)], width: usize) -> Vec<(Phase, usize)> {
    let total: u128 = times.iter().map(|(_, time)| u128::from(time.0)).sum();
    if total == 0 {
        return Vec::new();
    }
    let exact = |time: &Nanos| u128::from(time.0) * width as u128;
    let mut cells: Vec<(Phase, usize)> = times
        .iter()
        .map(|(phase, time)| (*phase, (exact(time) / total) as usize))
        .collect();
    let mut by_remainder: Vec<usize> = (0..times.len()).collect();
    by_remainder.sort_by_key(|index| std::cmp::Reverse(exact(&times[*index].1) % total));
    let left_over = width - cells.iter().map(|(_, cells)| cells).sum::<usize>();
    for index in by_remainder.into_iter().take(left_over) {
        cells[index].1 += 1;
    }
    cells
}

fn groups(page: &mut Page, report: &Report, top: Option<usize>) {
    let (heading, column) = match report.group_by {
        GroupBy::Command => ("Launches by command", "command"),
        GroupBy::Parent => ("Launches by the program that made them", "made by"),
    };
    page.heading(heading);
    let figures_width: usize = FIGURES.iter().map(|(_, width)| width).sum();
    let name_width = page.width().saturating_sub(figures_width + 2).max(8);
    let titles: String = FIGURES
        .iter()
        .map(|(title, width)| text::pad_left(title, *width))
        .collect();
    page.line([styled(
        QUIET,
        format!("  {}{titles}", text::pad_right(column, name_width)),
    )]);
    let shown = top.unwrap_or(report.groups.len()).min(report.groups.len());
    for group in &report.groups[..shown] {
        let name = text::pad_right(&text::escape(&group.label), name_width);
        page.line([styled(PLAIN, format!("  {name}{}", figures_of(group)))]);
    }
    left_out(page, &report.groups[shown..]);
}

fn figures_of(group: &Group) -> String {
    let sums = &group.sums;
    let largest = sums.phases.largest().map(|(phase, time)| {
        let whole = sums
            .phases
            .iter()
            .filter_map(|(_, sum)| sum.time)
            .map(|time| time.0)
            .sum();
        format!("{} {}", phase.name(), units::percent(time, Nanos(whole)))
    });
    let figures = [
        units::count(sums.count),
        units::time((sums.timed > 0).then_some(sums.total)),
        units::time(sums.mean()),
        units::time(sums.tax),
        largest.unwrap_or_else(|| "-".to_owned()),
        units::count(sums.failed_execs),
    ];
    figures
        .iter()
        .zip(FIGURES)
        .map(|(figure, (_, width))| text::pad_left(figure, width))
        .collect()
}

fn left_out(page: &mut Page, groups: &[Group]) {
    if groups.is_empty() {
        return;
    }
    let launches: u64 = groups.iter().map(|group| group.sums.count).sum();
    let tax = groups.iter().filter_map(|group| group.sums.tax).map(|tax| tax.0).sum();
    let more = units::counted(groups.len() as u64, "more row", "more rows");
    let launches = units::counted(launches, "launch", "launches");
    page.line([styled(
        QUIET,
        format!("  … {more}: {launches}, tax {} (see --top)", units::time(Nanos(tax))),
    )]);
}
