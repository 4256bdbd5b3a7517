//! The rows of the timeline as columns: one row for each launch, or for several similar ones if there are too many.

use std::collections::HashMap;

use super::lanes::{Span, lanes};
use super::pack::{Pack, zigzag};
use super::{Contents, Tables};
use crate::analyze::alike::Rows;
use crate::analyze::frames::Frames;
use crate::analyze::groups::{GroupBy, label_of};
use crate::analyze::launch::{Launch, Outcome};
use crate::analyze::phases::Phase;
use crate::event::Nanos;
use crate::present::flame::frame_text;
use crate::present::{text, words};

/// Maximum width of a command line, in columns.
const MAX_COLUMNS: usize = 2000;
/// Width to which a command line may always extend, in columns, even if there are very many launches.
const MIN_COLUMNS: usize = 100;
/// Maximum size of all command lines together, in bytes before compression.
const MAX_COMMAND_LINES_BYTES: usize = 6 << 20;
/// Maximum number of frames of a call chain.
const MAX_FRAMES: usize = 30;

/// The order of the rows in the columns.
pub(super) struct Order {
    /// Row numbers by start.
    rows: Vec<u32>,
    /// The position of each launch's row in the columns, by launch.
    pub(super) position_of: Vec<u32>,
}

impl Order {
    pub(super) fn by_start(contents: &Contents<'_, '_>, rows: &Rows) -> Order {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let start = |row: &u32| contents.start(rows.members(*row as usize)[0]);
        order.sort_by_cached_key(|row| (start(row), *row));
        let mut position_of = vec![0; contents.forest.launches.len()];
        for (position, row) in (0u32..).zip(&order) {
            for member in rows.members(*row as usize) {
                position_of[*member as usize] = position;
            }
        }
        Order { rows: order, position_of }
    }
}

/// Adds the columns of all rows. In columns named `known_...`, numbers are stored plus 1, and 0 means unknown. `total` is stored as the
/// difference from the sum of the phases, `span` and `critical` as differences from `total`, since these differences are usually small.
pub(super) fn add(pack: &mut Pack, contents: &Contents<'_, '_>, rows: &Rows, order: &Order, tables: &Tables) {
    let (spans, in_order) = spans(contents, rows, order);
    pack.add_deltas("start", in_order.iter().map(|span| span.start));
    let lanes = lanes(&spans);
    pack.add_deltas("lane", order.rows.iter().map(|row| u64::from(lanes[*row as usize])));
    let parent = |(position, row): (u32, &u32)| {
        let parent = rows.parent(*row as usize)?;
        let parent = order.position_of[rows.members(parent)[0] as usize];
        Some(zigzag(i64::from(position) - i64::from(parent)))
    };
    // A row is never its own parent, so 0 means that there is no parent.
    pack.add_plain("parent", (0u32..).zip(&order.rows).map(|row| parent(row).unwrap_or(0)));
    pack.add_plain("count", order.rows.iter().map(|row| rows.members(*row as usize).len() as u64));
    let times = |time: &dyn Fn(&Launch<'_>, usize) -> Option<Nanos>| times(contents, rows, order, time);
    let mut phases = vec![0; order.rows.len()];
    for phase in Phase::ALL {
        let column = times(&|launch, _| launch.phases.get(phase));
        for (sum, time) in phases.iter_mut().zip(&column) {
            *sum += time.saturating_sub(1);
        }
        pack.add_plain(&format!("known_{}", phase.name()), column);
    }
    let total = times(&|launch, _| launch.total(contents.forest.end));
    pack.add_plain("total", differences(&total, &phases));
    let span: Vec<u64> = in_order.iter().map(|span| span.end - span.start).collect();
    pack.add_plain("span", differences(&span, &total));
    let critical = times(&|_, index| contents.path.map(|path| path.launches[index].total()));
    pack.add_plain("critical", differences(&critical, &total));
    pack.add_plain("known_queued", times(&|_, index| contents.run_queue.get(index).copied()));
    pack.add_plain("known_awaited", times(&|_, index| contents.waits_of_parents.get(index).copied()));
    add_numbers(pack, contents, rows, order);
    add_texts(pack, contents, rows, order, tables);
}

/// Returns the sum of a time over the launches of each row, in units plus 1, or 0 if it is unknown for all of them.
fn times(
    contents: &Contents<'_, '_>,
    rows: &Rows,
    order: &Order,
    time: &dyn Fn(&Launch<'_>, usize) -> Option<Nanos>,
) -> Vec<u64> {
    let row_time = |row: &u32| {
        let known = rows
            .members(*row as usize)
            .iter()
            .filter_map(|index| time(&contents.forest.launches[*index as usize], *index as usize));
        let sum = known.map(|span| span.0).reduce(u64::saturating_add);
        sum.map_or(0, |sum| 1 + in_units(sum, contents.unit()))
    };
    order.rows.iter().map(row_time).collect()
}

fn differences(numbers: &[u64], others: &[u64]) -> Vec<u64> {
    let pairs = numbers.iter().zip(others);
    pairs.map(|(number, other)| zigzag(number.wrapping_sub(*other).cast_signed())).collect()
}

/// Returns the spans of rows in units of time, by row and in the order of the columns.
fn spans(contents: &Contents<'_, '_>, rows: &Rows, order: &Order) -> (Vec<Span>, Vec<Span>) {
    let unit = contents.unit();
    let span = |row: usize| {
        let members = rows.members(row);
        let start = contents.start(members[0]);
        let ends = members.iter().map(|member| contents.end(*member));
        Span {
            parent: rows.parent(row),
            start: start.0 / unit,
            end: ends.max().unwrap_or(start).max(start).0.div_ceil(unit),
        }
    };
    let spans: Vec<Span> = (0..rows.len()).map(span).collect();
    let in_order = order.rows.iter().map(|row| spans[*row as usize]).collect();
    (spans, in_order)
}

fn add_numbers(pack: &mut Pack, contents: &Contents<'_, '_>, rows: &Rows, order: &Order) {
    let launches = &contents.forest.launches;
    let firsts = || order.rows.iter().map(|row| rows.members(*row as usize)[0] as usize);
    pack.add_deltas("id", firsts().map(|index| launches[index].id.0));
    let pid = |index: usize| launches[index].pid.map_or(0, |pid| u64::from(pid.0.unsigned_abs()));
    pack.add_deltas("pid", firsts().map(pid));
    pack.add_plain("outcome", firsts().map(|index| outcome(launches[index].outcome)));
    pack.add_deltas(
        "known_parent_mib",
        firsts().map(|index| launches[index].parent_rss_bytes.get().map_or(0, |bytes| 1 + (bytes >> 20))),
    );
    let failed = |row: &u32| {
        let members = rows.members(*row as usize).iter();
        members.map(|index| contents.forest.failed_execs(*index as usize).len() as u64).sum()
    };
    pack.add_plain("failed_execs", order.rows.iter().map(failed));
}

/// Encodes how a process ended: 0 is success, 1 still running, 2 unknown; from 3 on, exit codes are odd and signals are even.
fn outcome(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Code(0) => 0,
        Outcome::Running => 1,
        Outcome::Unknown => 2,
        Outcome::Code(code) => 3 + 2 * u64::from(code.unsigned_abs()),
        Outcome::Signal { number, .. } => 4 + 2 * u64::from(number.unsigned_abs()),
    }
}

fn add_texts(pack: &mut Pack, contents: &Contents<'_, '_>, rows: &Rows, order: &Order, tables: &Tables) {
    let forest = contents.forest;
    let firsts: Vec<usize> = order.rows.iter().map(|row| rows.members(*row as usize)[0] as usize).collect();
    let columns = (MAX_COMMAND_LINES_BYTES / firsts.len().max(1)).clamp(MIN_COLUMNS, MAX_COLUMNS);
    let label = |index: usize, by| {
        let call_site = contents.callers.call_site_of(index);
        label_of(&forest.launches[index], call_site, by)
    };
    let mut add = |name: &str, text_of: &mut dyn FnMut(usize) -> String| {
        let numbers: Vec<u64> = firsts.iter().map(|index| pack.text(&text_of(*index))).collect();
        pack.add_plain(name, numbers);
    };
    add("command", &mut |index| text::escape(&forest.launches[index].command.label()));
    add("args", &mut |index| words::program(&forest.launches[index], Some(columns)));
    add("line", &mut |index| text::escape(&label(index, GroupBy::Line)));
    add("launcher", &mut |index| text::escape(&label(index, GroupBy::Parent)));
    add("cwd", &mut |index| {
        let cwd = forest.launches[index].execs.last().and_then(|exec| exec.cwd());
        cwd.map(text::escape).unwrap_or_default()
    });
    add("mechanism", &mut |index| forest.launches[index].mechanism.map_or("", |mechanism| mechanism.name()).to_owned());
    let mut chains = HashMap::new();
    add("stack", &mut |index| {
        let stack = forest.launches[index].best_stack();
        stack.map_or_else(String::new, |stack| {
            let chain = chains.entry(stack);
            chain.or_insert_with(|| call_chain(forest.frames(Some(stack)))).clone()
        })
    });
    let args_row = |index: &usize| {
        let row = tables.arguments.get(&label(*index, GroupBy::Arguments));
        row.map_or(0, |row| 1 + row)
    };
    pack.add_plain("args_row", firsts.iter().map(args_row));
}

/// Formats a call chain, one frame per line, the innermost first.
fn call_chain(mut frames: Frames<'_>) -> String {
    let mut lines: Vec<String> = frames.by_ref().take(MAX_FRAMES).map(|frame| frame_text(&frame)).collect();
    if frames.next().is_some() || frames.is_truncated() {
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

/// Converts nanoseconds to units of time, rounded.
pub(super) fn in_units(nanos: u64, unit: u64) -> u64 {
    nanos.saturating_add(unit / 2) / unit
}
