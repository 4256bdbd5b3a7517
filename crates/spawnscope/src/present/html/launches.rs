//! The rows of the timeline as columns: one row for each launch, or for several similar ones if
//! there are too many. Rows are placed in lanes: children are below their parent, and share a lane
//! if they do not overlap in time.

use std::collections::HashMap;

use super::pack::{Pack, zigzag};
use super::{Contents, Tables};
use crate::analyze::model::frames::Frames;
use crate::analyze::model::launch::{Launch, Outcome};
use crate::analyze::model::phases::Phase;
use crate::analyze::path::groups::{GroupBy, label_of};
use crate::analyze::sites::alike::Rows;
use crate::event::Nanos;
use crate::present::flame::frame_text;
use crate::present::{text, words};

const MAX_COLUMNS: usize = 2000;
/// Width to which a command line may always extend, in columns, even if there are very many
/// launches.
const MIN_COLUMNS: usize = 100;
/// Maximum size of all command lines together, in bytes before compression.
const MAX_COMMAND_LINES_BYTES: usize = 6 << 20;
const MAX_FRAMES: usize = 30;

pub(super) struct Order {
    rows: Vec<u32>,
    /// The position of each launch's row in the columns, by launch.
    pub(super) position_of: Vec<u32>,
}

impl Order {
    pub(super) fn by_start(contents: &Contents<'_, '_>, rows: &Rows) -> Order {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        order.sort_by_cached_key(|row| (contents.start(rows.members(*row as usize)[0]), *row));
        let mut position_of = vec![0; contents.forest.launches.len()];
        for (position, row) in (0u32..).zip(&order) {
            for member in rows.members(*row as usize) {
                position_of[*member as usize] = position;
            }
        }
        Order { rows: order, position_of }
    }

    fn first_launches(&self, rows: &Rows) -> Vec<usize> {
        self.rows.iter().map(|row| rows.members(*row as usize)[0] as usize).collect()
    }
}

/// Adds the columns of all rows. In columns named `known_...`, numbers are stored plus 1, and 0
/// means unknown. `total` is stored as the difference from the sum of the phases, `span` and
/// `critical` as differences from `total`, since these differences are usually small.
pub(super) fn add(pack: &mut Pack, contents: &Contents<'_, '_>, rows: &Rows, order: &Order, tables: &Tables) {
    let (spans, in_order) = spans(contents, rows, order);
    pack.add_deltas("start", in_order.iter().map(|span| span.start));
    let lanes = lanes(&spans);
    pack.add_deltas("lane", order.rows.iter().map(|row| u64::from(lanes[*row as usize])));
    // A row is never its own parent, so 0 means that there is no parent.
    let parents = (0u32..).zip(&order.rows).map(|(position, row)| {
        rows.parent(*row as usize).map_or(0, |parent| {
            let parent = order.position_of[rows.members(parent)[0] as usize];
            zigzag(i64::from(position) - i64::from(parent))
        })
    });
    pack.add_plain("parent", parents);
    pack.add_plain("count", order.rows.iter().map(|row| rows.members(*row as usize).len() as u64));
    let mut phases = vec![0; order.rows.len()];
    for phase in Phase::ALL {
        let column = times(contents, rows, order, |launch, _| launch.phases.get(phase));
        for (sum, time) in phases.iter_mut().zip(&column) {
            *sum += time.saturating_sub(1);
        }
        pack.add_plain(&format!("known_{}", phase.name()), column);
    }
    let total = times(contents, rows, order, |launch, _| launch.total(contents.forest.end));
    pack.add_plain("total", differences(&total, &phases));
    let span: Vec<u64> = in_order.iter().map(|span| span.end - span.start).collect();
    pack.add_plain("span", differences(&span, &total));
    let critical = times(contents, rows, order, |_, index| contents.path.map(|path| path.launches[index].total()));
    pack.add_plain("critical", differences(&critical, &total));
    for (name, spans) in [("known_queued", contents.run_queue), ("known_awaited", contents.waits_of_parents)] {
        pack.add_plain(name, times(contents, rows, order, |_, index| spans.get(index).copied()));
    }
    add_numbers(pack, contents, rows, order);
    add_texts(pack, contents, rows, order, tables);
}

/// Returns the sum of a time over the launches of each row, in units plus 1, or 0 if it is unknown
/// for all of them.
fn times(
    contents: &Contents<'_, '_>,
    rows: &Rows,
    order: &Order,
    time: impl Fn(&Launch<'_>, usize) -> Option<Nanos>,
) -> Vec<u64> {
    let sums = order.rows.iter().map(|row| {
        let launches = rows.members(*row as usize).iter().map(|index| *index as usize);
        let known = launches.filter_map(|index| time(&contents.forest.launches[index], index));
        known.map(|span| span.0).reduce(u64::saturating_add)
    });
    sums.map(|sum| sum.map_or(0, |sum| 1 + in_units(sum, contents.unit()))).collect()
}

fn differences(numbers: &[u64], others: &[u64]) -> Vec<u64> {
    let pairs = numbers.iter().zip(others);
    pairs.map(|(number, other)| zigzag(number.wrapping_sub(*other).cast_signed())).collect()
}

/// Returns the spans of rows in units of time, by row and in the order of the columns.
fn spans(contents: &Contents<'_, '_>, rows: &Rows, order: &Order) -> (Vec<Span>, Vec<Span>) {
    let spans: Vec<Span> = (0..rows.len()).map(|row| span(contents, rows, row)).collect();
    let in_order = order.rows.iter().map(|row| spans[*row as usize]).collect();
    (spans, in_order)
}

fn span(contents: &Contents<'_, '_>, rows: &Rows, row: usize) -> Span {
    let unit = contents.unit();
    let members = rows.members(row);
    let start = contents.start(members[0]);
    let ends = members.iter().map(|member| contents.end(*member));
    Span {
        parent: rows.parent(row),
        start: start.0 / unit,
        end: ends.max().unwrap_or(start).max(start).0.div_ceil(unit),
    }
}

fn add_numbers(pack: &mut Pack, contents: &Contents<'_, '_>, rows: &Rows, order: &Order) {
    let forest = contents.forest;
    let firsts: Vec<&Launch<'_>> =
        order.first_launches(rows).into_iter().map(|index| &forest.launches[index]).collect();
    pack.add_deltas("id", firsts.iter().map(|launch| launch.id.0));
    pack.add_deltas(
        "pid",
        firsts.iter().map(|launch| launch.pid.get().map_or(0, |pid| u64::from(pid.0.unsigned_abs()))),
    );
    pack.add_plain("outcome", firsts.iter().map(|launch| outcome(launch.outcome)));
    let parent_mib = firsts.iter().map(|launch| launch.parent_rss_bytes.get().map_or(0, |bytes| 1 + (bytes >> 20)));
    pack.add_deltas("known_parent_mib", parent_mib);
    let failed_execs = order.rows.iter().map(|row| {
        let members = rows.members(*row as usize).iter();
        members.map(|index| forest.failed_execs(*index as usize).len() as u64).sum::<u64>()
    });
    pack.add_plain("failed_execs", failed_execs);
}

/// Encodes how a process ended: 0 is success, 1 still running, 2 unknown; from 3 on, exit codes are
/// odd and signals are even.
fn outcome(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Code(0) => 0,
        Outcome::Running => 1,
        Outcome::Unknown => 2,
        Outcome::Code(code) => 3 + 2 * u64::from(code),
        Outcome::Signal { number, .. } => 4 + 2 * u64::from(number),
    }
}

fn add_texts(pack: &mut Pack, contents: &Contents<'_, '_>, rows: &Rows, order: &Order, tables: &Tables) {
    let forest = contents.forest;
    let firsts = order.first_launches(rows);
    let columns = (MAX_COMMAND_LINES_BYTES / firsts.len().max(1)).clamp(MIN_COLUMNS, MAX_COLUMNS);
    let mut add = |name: &str, text_of: &mut dyn FnMut(usize) -> String| {
        let numbers: Vec<u64> = firsts.iter().map(|index| pack.text(&text_of(*index))).collect();
        pack.add_plain(name, numbers);
    };
    add("command", &mut |index| text::escape(&forest.launches[index].command.label()));
    add("args", &mut |index| words::program(&forest.launches[index], Some(columns)));
    add("line", &mut |index| text::escape(&label(contents, index, GroupBy::Line)));
    add("launcher", &mut |index| text::escape(&label(contents, index, GroupBy::Parent)));
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
    let args_rows = firsts.iter().map(|index| {
        let row = tables.arguments.get(&label(contents, *index, GroupBy::Arguments));
        row.map_or(0, |row| 1 + row)
    });
    pack.add_plain("args_row", args_rows);
}

fn label(contents: &Contents<'_, '_>, index: usize, by: GroupBy) -> Vec<u8> {
    label_of(&contents.forest.launches[index], contents.callers.call_site_of(index), by)
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

/// A row to place. Parents precede their children.
#[derive(Clone, Copy)]
struct Span {
    parent: Option<usize>,
    start: u64,
    end: u64,
}

/// Maximum number of lanes: a screen cannot show more. Further rows share the lowest lane.
const MAX_LANES: u32 = 512;

/// Returns the lane of each span, from 0 at the top. Each span has its own block of lanes, which
/// contains the blocks of its children.
fn lanes(spans: &[Span]) -> Vec<u32> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); spans.len() + 1];
    // The index of the list of spans without a parent.
    let top = spans.len();
    for (index, span) in spans.iter().enumerate() {
        children[span.parent.unwrap_or(top)].push(index);
    }
    let mut blocks: Vec<Block> = spans.iter().map(Block::new).collect();
    for index in (0..=top).rev() {
        let siblings = &mut children[index];
        siblings.sort_by_key(|child| (spans[*child].start, *child));
        let height = place(siblings, &mut blocks);
        if let Some(block) = blocks.get_mut(index) {
            block.height = (1 + height).min(MAX_LANES);
        }
        let end = siblings.iter().map(|child| blocks[*child].end).max();
        if let (Some(block), Some(end)) = (blocks.get_mut(index), end) {
            block.end = block.end.max(end);
        }
    }
    let mut lanes = vec![0; spans.len()];
    for (index, span) in spans.iter().enumerate() {
        let above = span.parent.map_or(0, |parent| lanes[parent] + 1);
        lanes[index] = (above + blocks[index].offset).min(MAX_LANES - 1);
    }
    lanes
}

/// The lanes of a span and of everything below it.
struct Block {
    start: u64,
    /// The end of the last descendant.
    end: u64,
    height: u32,
    /// The first lane, counted from the lane below the parent.
    offset: u32,
}

impl Block {
    fn new(span: &Span) -> Block {
        Block { start: span.start, end: span.end.max(span.start), height: 1, offset: 0 }
    }
}

/// Places blocks, ordered by start, in the first lanes that are free for all their height. Returns
/// the number of lanes.
fn place(ordered: &[usize], blocks: &mut [Block]) -> u32 {
    // When each lane becomes free.
    let mut free_from: Vec<u64> = Vec::new();
    for index in ordered {
        let block = &mut blocks[*index];
        let height = block.height as usize;
        let offset = first_free(&free_from, block.start, height).min((MAX_LANES as usize).saturating_sub(height));
        let last = offset + height;
        if free_from.len() < last {
            free_from.resize(last, 0);
        }
        free_from[offset..last].iter_mut().for_each(|at| *at = (*at).max(block.end));
        block.offset = offset as u32;
    }
    free_from.len() as u32
}

fn first_free(free_from: &[u64], start: u64, height: usize) -> usize {
    let mut offset = 0;
    for (lane, at) in free_from.iter().enumerate() {
        if *at > start {
            offset = lane + 1;
        } else if lane + 1 - offset == height {
            return offset;
        }
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(parent: Option<usize>, start: u64, end: u64) -> Span {
        Span { parent, start, end }
    }

    #[test]
    fn children_are_below_their_parent_and_side_by_side_when_they_overlap() {
        let spans = [
            span(None, 0, 100),
            span(Some(0), 10, 30),
            span(Some(0), 20, 40),
            span(Some(0), 30, 50),
            span(Some(1), 12, 14),
            span(Some(2), 22, 24),
        ];
        assert_eq!(lanes(&spans), [0, 1, 3, 1, 2, 4]);
    }

    #[test]
    fn long_chains_and_many_concurrent_spans_stay_within_the_lanes() {
        let chain: Vec<Span> = (0..2000usize).map(|index| span(index.checked_sub(1), 0, 10)).collect();
        assert!(lanes(&chain).iter().all(|lane| *lane < MAX_LANES));
        let mut crowd = vec![span(None, 0, 10)];
        crowd.extend((0..2000).map(|_| span(Some(0), 0, 10)));
        assert!(lanes(&crowd).iter().all(|lane| *lane < MAX_LANES));
    }
}
