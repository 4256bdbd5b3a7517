//! The tables of the page: launches grouped by program, line, arguments and parent.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::analyze::groups::Group;
use crate::analyze::phases::Phase;
use crate::analyze::report::GroupBy;
use crate::present::json::{grouping_name, nanos};
use crate::present::text;

/// Maximum number of rows of a table. Further rows are only counted.
const MAX_ROWS: usize = 1000;
/// Maximum width of a label, in columns.
const MAX_LABEL_WIDTH: usize = 300;
/// Maximum number of programs, and of call sites, that a row names.
const MAX_NAMED: usize = 3;

/// The tables.
pub(super) struct Tables {
    /// All tables as JSON.
    pub(super) value: Value,
    /// The row of each label in the table by arguments.
    pub(super) arguments: HashMap<Vec<u8>, u64>,
}

impl Tables {
    pub(super) fn new(all: &[(GroupBy, Vec<Group>)]) -> Tables {
        let mut tables = Map::new();
        let mut arguments = HashMap::new();
        for (group_by, groups) in all {
            let shown = &groups[..groups.len().min(MAX_ROWS)];
            if *group_by == GroupBy::Arguments {
                arguments = (0..).zip(shown).map(|(position, group)| (group.label.clone(), position)).collect();
            }
            let table = json!({
                "rows": shown.iter().map(|group| row(group, *group_by)).collect::<Vec<_>>(),
                "omitted": groups.len() - shown.len(),
            });
            tables.insert(grouping_name(*group_by).to_owned(), table);
        }
        Tables { value: Value::Object(tables), arguments }
    }
}

fn row(group: &Group, group_by: GroupBy) -> Value {
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
