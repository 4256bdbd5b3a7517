//! The process tree as text, one line per process. Lines are written during the walk, so a large or
//! deep tree needs neither memory nor recursion.

use std::io::{self, Write};

use super::page::{PLAIN, QUIET, TITLE, WARNING};
use super::{text, units, words};
use crate::analyze::Forest;
use crate::analyze::model::launch::{FailedExec, Launch, Outcome};
use crate::analyze::model::phases::Phase;
use crate::analyze::model::tree::Step;
use crate::analyze::model::tree_view::{Line, TreeOptions, TreeView};
use crate::analyze::path::critical_path::CriticalPath;
use crate::analyze::waits::failed_execs::{attempts_of, without_repetitions};
use crate::event::Nanos;

/// Width reserved for phases when a program's arguments are cut, in columns.
const PHASES_WIDTH: usize = 26;
/// Minimum width of a program with its arguments, in columns, even in deep trees.
const MIN_PROGRAM_WIDTH: usize = 16;
/// Maximum width of the file of a failed exec, in columns.
const FAILED_PATH_WIDTH: usize = 24;
const MAX_FAILED_EXECS: usize = 20;
/// Maximum number of levels drawn in a line, if lines are not cut.
const MAX_LEVELS: usize = 40;

/// Writes the part of a tree that the options select. With a critical path, each line shows the
/// launch's time on it. `width` cuts lines for a terminal; `None` does not cut.
pub fn write(
    out: &mut dyn Write,
    forest: &Forest<'_>,
    options: TreeOptions<'_>,
    path: Option<&CriticalPath>,
    width: Option<usize>,
) -> io::Result<()> {
    let has_orphans = forest.orphans.iter().any(|orphan| options.shown.is_none_or(|shown| shown[*orphan]));
    let writer = TreeWriter { forest, view: TreeView::new(forest, options), path, width };
    // The roots of the main tree are at the margin, without a branch.
    writer.write_subtrees(out, &forest.roots, 1)?;
    if has_orphans {
        writeln!(out, "{WARNING}[processes whose parent or creation was not recorded]{WARNING:#}")?;
        writer.write_subtrees(out, &forest.orphans, 0)?;
    }
    Ok(())
}

struct TreeWriter<'s, 'a> {
    forest: &'s Forest<'a>,
    view: TreeView<'s, 'a>,
    path: Option<&'s CriticalPath>,
    width: Option<usize>,
}

impl TreeWriter<'_, '_> {
    /// Writes these processes and everything below them. No branches are drawn for the topmost
    /// `levels_without_branch` levels.
    fn write_subtrees(&self, out: &mut dyn Write, tops: &[usize], levels_without_branch: usize) -> io::Result<()> {
        // For each level above the current line, whether its last sibling was reached.
        let mut finished_levels = Vec::new();
        for line in self.view.lines(tops) {
            let (depth, is_last) = line.position();
            finished_levels.truncate(depth);
            finished_levels.push(is_last);
            let branch = draw_branch(&finished_levels[levels_without_branch..], self.width);
            match line {
                Line::Launch(step) => self.write_line(out, step, &branch)?,
                Line::Folded { count, total, .. } => {
                    let more = format!("… {} more like it  {}", units::count(count), units::time(total));
                    self.write_note(out, &branch, &more)?;
                }
                Line::Below { count, .. } => {
                    let below = format!("… {} below", units::counted(count, "program", "programs"));
                    self.write_note(out, &branch, &below)?;
                }
            }
        }
        Ok(())
    }

    fn write_note(&self, out: &mut dyn Write, branch: &str, note: &str) -> io::Result<()> {
        let note = match self.width {
            Some(width) => text::truncate(note, width.saturating_sub(text::width(branch))),
            None => note.to_owned(),
        };
        writeln!(out, "{QUIET}{branch}{note}{QUIET:#}")
    }

    fn write_line(&self, out: &mut dyn Write, step: Step, branch: &str) -> io::Result<()> {
        let (forest, width) = (self.forest, self.width);
        let launch = &forest.launches[step.index];
        let pid = launch.pid.get().map_or_else(|| "-".to_owned(), |pid| pid.0.to_string());
        let mut facts = launch_facts(forest, step.index, width);
        if let Some(path) = self.path {
            let critical = units::time(path.launches[step.index].total());
            facts.push_str(&format!("  {critical} on the critical path"));
        }
        let used = text::width(branch) + pid.len() + 1 + text::width(&facts);
        let program_limit = width.map(|width| {
            let available = width.saturating_sub(used);
            available.saturating_sub(PHASES_WIDTH).max(MIN_PROGRAM_WIDTH.min(available))
        });
        let mut program = words::program(launch, program_limit);
        if let Some(limit) = program_limit {
            program = text::truncate(&program, limit);
        }
        let phases_limit = width.map(|width| width.saturating_sub(used + text::width(&program)));
        let phases = list_phases(launch, phases_limit);
        let facts = match width {
            // The line is so deep or narrow that even the facts do not fit.
            Some(width) => text::truncate(&facts, width.saturating_sub(text::width(branch) + pid.len() + 1)),
            None => facts,
        };
        let facts_style = if is_failure(launch.outcome) { WARNING } else { PLAIN };
        write!(out, "{QUIET}{branch}{pid}{QUIET:#} {TITLE}{program}{TITLE:#}")?;
        write!(out, "{facts_style}{facts}{facts_style:#}")?;
        if !phases.is_empty() {
            write!(out, "{QUIET}{phases}{QUIET:#}")?;
        }
        writeln!(out)
    }
}

fn is_failure(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Signal { .. }) || matches!(outcome, Outcome::Code(code) if code != 0)
}

/// Draws the lines that connect a process to its parent. In deep trees, only the lowest levels are
/// drawn, after a count of the omitted ones: a chain of 100,000 would need a gigabyte of branches.
fn draw_branch(finished_levels: &[bool], width: Option<usize>) -> String {
    let max_levels = width.map_or(MAX_LEVELS, |width| width / 8);
    let omitted = finished_levels.len().saturating_sub(max_levels);
    let mut drawn = if omitted > 0 { format!("+{omitted} ") } else { String::new() };
    if let Some((is_last, above)) = finished_levels[omitted..].split_last() {
        for is_finished in above {
            drawn.push_str(if *is_finished { "   " } else { "│  " });
        }
        drawn.push_str(if *is_last { "└─ " } else { "├─ " });
    }
    drawn
}

/// Returns the wall time of a launch, and anything unusual about it.
fn launch_facts(forest: &Forest<'_>, index: usize, width: Option<usize>) -> String {
    let launch = &forest.launches[index];
    let attempts = attempts_of(forest, index);
    let misses: u64 = attempts.searches.iter().map(|search| search.misses.len() as u64).sum();
    let mut notes = vec![units::time(launch.total(forest.end))];
    notes.extend(Some(words::outcome(launch.outcome)).filter(|outcome| !outcome.is_empty()));
    notes.extend((misses > 0).then(|| units::counted(misses, "PATH miss", "PATH misses")));
    notes.extend(list_failed_execs(&attempts.other_failures, width));
    notes.extend(words::origin_mark(launch.origin).map(str::to_owned));
    notes.iter().map(|note| format!("  {note}")).collect()
}

/// Lists execs that failed, each with errno and file. With a width limit, only the first one.
fn list_failed_execs(failed: &[FailedExec<'_>], width: Option<usize>) -> Vec<String> {
    let distinct = without_repetitions(failed);
    let max_notes = width.map_or(MAX_FAILED_EXECS, |_| 1);
    let mut notes = Vec::new();
    for (failed, times) in distinct.iter().take(max_notes) {
        let path = text::escape(failed.path);
        let path = if width.is_some() { text::truncate(&path, FAILED_PATH_WIDTH) } else { path };
        let times = if *times > 1 { format!("{} x ", units::count(*times)) } else { String::new() };
        notes.push(format!("{times}{} {path}", words::errno_name(failed.errno)));
    }
    let more: u64 = distinct.iter().skip(max_notes).map(|(_, times)| times).sum();
    notes.extend((more > 0).then(|| units::counted(more, "more failed exec", "more failed execs")));
    notes
}

/// Returns the start-up time, with the phases that it consists of, longest first, as many as fit.
fn list_phases(launch: &Launch<'_>, width_limit: Option<usize>) -> String {
    let spent = launch.phases.iter().filter_map(|(phase, time)| Some((phase, time.filter(|time| time.0 > 0)?)));
    let mut spent: Vec<(Phase, Nanos)> = spent.filter(|(phase, _)| *phase != Phase::Run).collect();
    spent.sort_by_key(|(phase, time)| (std::cmp::Reverse(*time), *phase));
    let sum = spent.iter().map(|(_, time)| time.0).sum();
    let mut shown = String::new();
    let start = (format!("  start-up {}", units::time(Nanos(sum))), ": ");
    let phases = spent.iter().map(|(phase, time)| (format!("{} {}", phase.name(), units::time(*time)), ", "));
    let mut separator = "";
    for (part, next) in std::iter::once(start).filter(|_| sum > 0).chain(phases) {
        if width_limit.is_some_and(|limit| text::width(&shown) + separator.len() + text::width(&part) > limit) {
            break;
        }
        shown.push_str(separator);
        shown.push_str(&part);
        separator = next;
    }
    shown
}
