//! The difference as JSON, schema version 1. Unknown values are `null`. Times are means over the
//! runs.

use serde_json::{Map, Value, json};

use super::{sentence, warnings};
use crate::analyze::compare::diff::{ChangeKind, CountChange, Diff, Row, ScriptLine, TimeChange, Times};
use crate::present::json_values::{insert_or_null, insert_text, with_text};
use crate::present::text;

const SCHEMA_VERSION: u32 = 1;

pub fn json(diff: &Diff) -> Value {
    let [before, after] = [0, 1].map(|side| {
        let command = text::command_line(diff.commands[side].iter().map(Vec::as_slice), None);
        json!({ "command": command, "runs": diff.runs[side], "lost_events": diff.lost[side] })
    });
    json!({
        "schema_version": SCHEMA_VERSION,
        "summary": sentence::first_sentence(diff),
        "before": before,
        "after": after,
        "warnings": warnings(diff),
        "wall_ns": time(&diff.wall),
        "launches": count(&diff.launches),
        "forks_without_exec": count(&diff.forks_without_exec),
        "failed_execs": count(&diff.failed_execs),
        "critical_tax_ns": time(&diff.critical_tax),
        "launch_tax_ns": time(&diff.times.tax),
        "phases": phases(&diff.times),
        "groups": diff.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn phases(times: &Times) -> Map<String, Value> {
    let phases = times.phases.iter();
    phases.map(|(phase, change)| (phase.name().to_owned(), time(change))).collect()
}

fn count(change: &CountChange) -> Value {
    let [before, after] = [change.before, change.after]
        .map(|count| json!({ "low": count.low, "median": count.median, "high": count.high }));
    json!({
        "before": before,
        "after": after,
        "difference": change.difference(),
        "is_change": change.is_change(),
    })
}

fn time(change: &TimeChange) -> Value {
    json!({
        "before": rounded(change.before),
        "after": rounded(change.after),
        "difference": rounded(change.value()),
        "low": rounded(change.difference.map(|difference| difference.low)),
        "high": rounded(change.difference.map(|difference| difference.high)),
        "is_change": change.is_change(),
    })
}

fn rounded(value: Option<f64>) -> Option<i64> {
    value.map(|value| value.round() as i64)
}

fn row(row: &Row) -> Value {
    let kind = match row.kind {
        ChangeKind::Added => "added",
        ChangeKind::Removed => "removed",
        ChangeKind::Changed => "changed",
        ChangeKind::Same => "same",
    };
    let mut object = Map::new();
    object.insert("kind".into(), kind.into());
    insert_text(&mut object, "command", &row.command);
    insert_or_null(&mut object, "arguments", row.arguments.as_deref());
    object.insert("variants".into(), row.variants.into());
    insert_text(&mut object, "parent", &row.parent);
    object.insert("line_before".into(), row.line_before.as_ref().map(script_line).into());
    object.insert("line_after".into(), row.line_after.as_ref().map(script_line).into());
    object.insert("launches".into(), count(&row.count));
    object.insert("failed_execs".into(), count(&row.failed_execs));
    object.insert("critical_ns".into(), time(&row.times.critical));
    object.insert("tax_ns".into(), time(&row.times.tax));
    object.insert("phases".into(), phases(&row.times).into());
    Value::Object(object)
}

fn script_line(line: &ScriptLine) -> Value {
    let function = line.function.as_deref().map(String::from_utf8_lossy);
    let rest = json!({ "line": line.line, "function": function });
    with_text("file", line.path.0.as_deref().unwrap_or(&line.file), rest).into()
}
