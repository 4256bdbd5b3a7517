//! The page of `spawnscope html`: one file with everything in it, which loads nothing and opens
//! without a server. `frame` is the part that can be read without scripts. This file, `launches`
//! and `pack` make the data, and `bundle/` is the code that draws it, built from
//! crates/spawnscope/html. Strings of a recording are data: they reach the page through the
//! template, which escapes them, or compressed.

mod difference;
mod frame;
mod launches;
mod pack;

use std::collections::HashMap;
use std::io;

use serde_json::{Map, Value, json};

pub use self::difference::difference;
use self::launches::{Order, in_units};
use self::pack::Pack;
pub(super) use self::pack::push_varint;
use super::flame::{STACKINGS, WEIGHTS, boxes};
use super::groupings::grouping_of;
use super::json_values::nanos;
use super::{critical, text, words};
use crate::analyze::model::phases::Phase;
use crate::analyze::path::concurrency::Concurrency;
use crate::analyze::path::critical_path::{Charge, CriticalPath, Stretch};
use crate::analyze::path::flame::Flame;
use crate::analyze::path::groups::Group;
use crate::analyze::predict::dependence::Removal;
use crate::analyze::sites::alike;
use crate::analyze::sites::callers::Callers;
use crate::analyze::waits::attribution::AttributedWaits;
use crate::analyze::{Forest, GroupBy, Report};
use crate::event::Nanos;

/// Maximum number of rows of the timeline. If there are more launches, similar ones are merged.
const MAX_ROWS: usize = 100_000;
/// Up to this number of launches, times are stored in tenths of a microsecond, else in
/// microseconds.
const MAX_PRECISE_LAUNCHES: usize = 5_000;
/// A flame graph has this many columns. Boxes narrower than one column are omitted.
const FLAME_COLUMNS: u64 = 4000;
const MAX_WAITS: usize = 200;

pub struct Contents<'c, 'a> {
    /// The report, by command and with its waits.
    pub report: &'c Report,
    pub forest: &'c Forest<'a>,
    pub callers: &'c Callers,
    /// The critical path by launch, if known.
    pub path: Option<&'c CriticalPath>,
    /// The critical path in time. Empty if unknown.
    pub stretches: &'c [Stretch],
    pub tables: &'c [(GroupBy, Vec<Group>)],
    pub waits_of_parents: &'c [Nanos],
    /// The time that each launch's threads waited for a CPU, by launch.
    pub run_queue: &'c [Nanos],
    /// Threads on CPUs and in the run queue, if known.
    pub concurrency: Option<&'c Concurrency>,
    /// What it would save to remove the launches of some programs or script lines.
    pub removals: &'c [Removal],
    pub flames: &'c [Flame<'a>],
    /// The recording as typed on a command line. `None` means the default file.
    pub file: Option<&'c str>,
}

impl Contents<'_, '_> {
    /// Returns the start of a launch. A launch that existed before, or whose start is unknown,
    /// starts with the recording.
    fn start(&self, index: u32) -> Nanos {
        self.forest.launches[index as usize].start().unwrap_or_default()
    }

    /// Returns the end of a launch. A process that still runs lasts as long as the recording; any
    /// other launch without a known end has no duration.
    fn end(&self, index: u32) -> Nanos {
        let launch = &self.forest.launches[index as usize];
        let is_alive = launch.is_unfinished() || !launch.is_launch();
        launch.end().unwrap_or(if is_alive { self.forest.end } else { self.start(index) })
    }

    /// Returns the length of the unit in which times are stored, in nanoseconds.
    fn unit(&self) -> u64 {
        if self.forest.launches.len() <= MAX_PRECISE_LAUNCHES { 100 } else { 1000 }
    }
}

pub fn render(contents: &Contents<'_, '_>) -> io::Result<String> {
    let data = data(contents)?;
    frame::render(contents, &data)
}

fn data(contents: &Contents<'_, '_>) -> io::Result<String> {
    let mut pack = Pack::default();
    let tables = Tables::new(contents.tables);
    let rows = alike::rows(contents.forest, contents.callers, MAX_ROWS);
    let order = Order::by_start(contents, &rows);
    launches::add(&mut pack, contents, &rows, &order, &tables);
    add_path(&mut pack, contents, &order);
    if let Some(concurrency) = contents.concurrency {
        for (name, means) in [("running", &concurrency.running), ("waiting", &concurrency.waiting)] {
            pack.add_deltas(name, means.iter().map(|mean| (100.0 * mean).round() as u64));
        }
    }
    let flames: Vec<Value> = contents.flames.iter().map(|flame| add_flame(&mut pack, flame)).collect();
    for (number, advice) in contents.report.advices.worth.iter().enumerate() {
        let mut positions: Vec<u64> =
            advice.finding.launches.iter().map(|launch| u64::from(order.position_of[*launch as usize])).collect();
        positions.sort_unstable();
        positions.dedup();
        pack.add_deltas(&format!("advice_{number}"), positions);
    }
    let mut header = header(contents);
    header.insert("tables".into(), tables.value);
    header.insert("flames".into(), flames.into());
    pack.finish(header)
}

fn header(contents: &Contents<'_, '_>) -> Map<String, Value> {
    let report = contents.report;
    let header = json!({
        "unit_ns": contents.unit(),
        "wall_ns": report.wall.0,
        "end_ns": contents.forest.end.0.max(report.wall.0),
        "unrecorded_ns": report.advices.unrecorded.0,
        "cpus": report.info.cpus,
        "launches": report.all.count,
        "has_path": contents.path.is_some(),
        "file": contents.file,
        "phases": Phase::ALL.map(|phase| json!({"name": phase.name(), "causes": words::phase_causes(phase)})),
        "waits": report.waits.iter().take(MAX_WAITS).map(waits).collect::<Vec<_>>(),
        "waits_omitted": report.waits.len().saturating_sub(MAX_WAITS),
        "removals": contents.removals.iter().map(removal).collect::<Vec<_>>(),
        "advice": report.advices.worth.iter().map(|advice| advice.saving.map(|nanos| nanos.0)).collect::<Vec<_>>(),
    });
    match header {
        Value::Object(header) => header,
        _ => Map::new(),
    }
}

fn waits(waits: &AttributedWaits) -> Value {
    json!({
        "command": text::escape(&waits.command),
        "sentence": critical::waits_sentence(waits).replace(critical::NO_BREAK_SPACE, " "),
        "count": waits.count,
        "total": waits.parts.total().0,
    })
}

fn removal(removal: &Removal) -> Value {
    json!({
        "by": grouping_of(removal.by).name,
        "label": text::escape(&removal.label),
        "launches": removal.launches,
        "saving": removal.saving.map(|nanos| nanos.0),
    })
}

fn add_path(pack: &mut Pack, contents: &Contents<'_, '_>, order: &Order) {
    let unit = contents.unit();
    let parts = path_parts(contents.stretches, order);
    pack.add_deltas("path_start", parts.iter().map(|part| part.start / unit));
    pack.add_plain("path_span", parts.iter().map(|part| in_units(part.end - part.start, unit)));
    pack.add_deltas("path_row", parts.iter().map(|part| part.position.map_or(0, |position| 1 + u64::from(position))));
}

fn add_flame(pack: &mut Pack, flame: &Flame<'_>) -> Value {
    let (stacking, weight) = (flame.options.stacking, flame.options.weight);
    let stacking = STACKINGS.iter().find(|(.., known)| *known == stacking).map_or("", |(name, ..)| name);
    let weight = WEIGHTS.iter().find(|(.., known)| *known == weight).map_or("", |(name, ..)| name);
    let name = format!("flame_{stacking}_{weight}");
    let drawn = boxes(flame, flame.total / FLAME_COLUMNS);
    pack.add_plain(
        &format!("{name}_below"),
        drawn.iter().enumerate().map(|(position, each)| each.below.map_or(0, |below| position - below) as u64),
    );
    pack.add_plain(&format!("{name}_weight"), drawn.iter().map(|each| each.weight));
    let texts: Vec<u64> = drawn.iter().map(|each| pack.text(&each.text)).collect();
    pack.add_plain(&format!("{name}_text"), texts);
    pack.add_plain(&format!("{name}_kind"), drawn.iter().map(|each| each.kind as u64));
    pack.add_plain(&format!("{name}_phase"), drawn.iter().map(|each| each.phase.map_or(0, |phase| 1 + phase as u64)));
    json!({"name": name, "stacking": stacking, "weight": weight, "total": flame.total})
}

/// Maximum number of rows of a table. Further rows are only counted.
const MAX_TABLE_ROWS: usize = 1000;
const MAX_LABEL_WIDTH: usize = 300;
/// Maximum number of programs, and of call sites, that a row names.
const MAX_NAMED: usize = 3;

struct Tables {
    value: Value,
    /// The row of each label in the table by arguments.
    arguments: HashMap<Vec<u8>, u64>,
}

impl Tables {
    fn new(all: &[(GroupBy, Vec<Group>)]) -> Tables {
        let mut tables = Map::new();
        let mut arguments = HashMap::new();
        for (group_by, groups) in all {
            let shown = &groups[..groups.len().min(MAX_TABLE_ROWS)];
            if *group_by == GroupBy::Arguments {
                arguments = (0..).zip(shown).map(|(position, group)| (group.label.clone(), position)).collect();
            }
            let table = json!({
                "rows": shown.iter().map(|group| table_row(group, *group_by)).collect::<Vec<_>>(),
                "omitted": groups.len() - shown.len(),
            });
            tables.insert(grouping_of(*group_by).name.to_owned(), table);
        }
        Tables { value: Value::Object(tables), arguments }
    }
}

fn table_row(group: &Group, group_by: GroupBy) -> Value {
    let sums = &group.sums;
    let is_line = group_by == GroupBy::Line;
    json!({
        "label": text::truncate(&text::escape(&group.label), MAX_LABEL_WIDTH),
        "count": sums.count,
        "total": nanos((sums.timed > 0).then_some(sums.total)),
        "mean": nanos(sums.mean()),
        "tax": nanos(sums.tax),
        "critical": nanos(sums.critical),
        "failed": sums.failed_execs,
        "inclusive": is_line.then_some(group.inclusive.total.0),
        "inclusive_critical": nanos(group.inclusive.critical.filter(|_| is_line)),
        "phases": Phase::ALL.map(|phase| nanos(sums.phases.get(phase).time)),
        "launched": list_counts(group.launched.iter().map(|(label, count)| (text::escape(label), *count))),
        "callers": list_counts(group.callers.largest.iter().map(|(call_site, count)| (text::escape(&call_site.short_label()), *count))),
    })
}

/// Formats names with counts: `dirname x 24, mv x 3`.
fn list_counts(counts: impl Iterator<Item = (String, u64)>) -> String {
    let texts: Vec<String> = counts.take(MAX_NAMED).map(|(label, count)| format!("{label} x {count}")).collect();
    text::truncate(&texts.join(", "), MAX_LABEL_WIDTH)
}

/// Maximum number of parts of the path. A screen cannot show more.
const MAX_PARTS: u64 = 16_384;

/// A part of the path. Times are in nanoseconds since the recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PathPart {
    start: u64,
    end: u64,
    /// The position of the row in the columns. `None` outside of all launches.
    position: Option<u32>,
}

/// Returns the parts of the path in order. If there are too many, all parts in a span of time
/// become one, on the row with most of that time.
fn path_parts(stretches: &[Stretch], order: &Order) -> Vec<PathPart> {
    let parts = stretches.iter().map(|stretch| PathPart {
        start: stretch.start.0,
        end: stretch.end.0,
        position: position_of(stretch.charge, order),
    });
    let mut parts: Vec<PathPart> = parts.collect();
    parts.sort_by_key(|part| part.start);
    let parts = join_adjacent(parts);
    let end = parts.last().map_or(0, |part| part.end);
    if parts.len() as u64 <= MAX_PARTS {
        return parts;
    }
    join_adjacent(merge_into_bins(&parts, end.div_ceil(MAX_PARTS)))
}

fn position_of(charge: Charge, order: &Order) -> Option<u32> {
    match charge {
        Charge::Phase(launch, _) | Charge::RunQueue(launch) => Some(order.position_of[launch as usize]),
        Charge::ExternalWait(_) => None,
    }
}

fn join_adjacent(parts: Vec<PathPart>) -> Vec<PathPart> {
    let mut all: Vec<PathPart> = Vec::new();
    for part in parts {
        match all.last_mut().filter(|last| last.position == part.position && last.end == part.start) {
            Some(last) => last.end = part.end,
            None => all.push(part),
        }
    }
    all
}

/// Divides the time into bins of this width, in nanoseconds. Each bin becomes a part on the row
/// with most of its time.
fn merge_into_bins(parts: &[PathPart], width: u64) -> Vec<PathPart> {
    let mut bins: Vec<PathPart> = Vec::new();
    let mut times: HashMap<Option<u32>, u64> = HashMap::new();
    let mut bin = 0;
    for part in parts {
        let mut at = part.start;
        while at < part.end {
            if at / width != bin {
                bins.extend(finish_bin(bin, width, &mut times));
                bin = at / width;
            }
            let until = part.end.min((bin + 1).saturating_mul(width));
            *times.entry(part.position).or_default() += until - at;
            at = until;
        }
    }
    bins.extend(finish_bin(bin, width, &mut times));
    bins
}

fn finish_bin(bin: u64, width: u64, times: &mut HashMap<Option<u32>, u64>) -> Option<PathPart> {
    let (position, _) = times.drain().max_by_key(|(position, time)| (*time, *position))?;
    Some(PathPart { start: bin * width, end: (bin + 1).saturating_mul(width), position })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64, position: u32) -> PathPart {
        PathPart { start, end, position: Some(position) }
    }

    #[test]
    fn a_bin_is_on_the_row_with_most_time_in_it() {
        let parts = [part(0, 4, 1), part(4, 6, 2), part(6, 11, 1), part(11, 30, 3)];
        assert_eq!(join_adjacent(merge_into_bins(&parts, 10)), [part(0, 10, 1), part(10, 30, 3)]);
    }
}
