//! The result of a check as JSON.

use serde_json::{Map, Value, json};

use super::{blame, limit, measured, name};
use crate::analyze::compare::budgets::{Check, Culprit, Measured, Verdict};
use crate::present::json_values::{insert_or_null, insert_text};
use crate::present::text;

const SCHEMA_VERSION: u32 = 1;

pub fn json(check: &Check) -> String {
    let value = json!({
        "schema_version": SCHEMA_VERSION,
        "command": text::command_line(check.command.iter().map(Vec::as_slice), None),
        "runs": check.runs,
        "lost_events": check.lost,
        "is_kept": check.is_kept(),
        "budgets": check.verdicts.iter().map(verdict).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

fn verdict(verdict: &Verdict) -> Value {
    let (value, low, high) = match verdict.measured {
        Measured::Count(count) => (json!(count.median), json!(count.low), json!(count.high)),
        Measured::Interval(interval) => (json!(interval.value), json!(interval.low), json!(interval.high)),
    };
    json!({
        "budget": name(&verdict.budget),
        "limit": limit(&verdict.budget),
        "measured": measured(verdict),
        "value": value,
        "low": low,
        "high": high,
        "is_exceeded": verdict.is_exceeded,
        "culprits": verdict.culprits.iter().map(|each| culprit(each, verdict)).collect::<Vec<_>>(),
    })
}

fn culprit(culprit: &Culprit, verdict: &Verdict) -> Value {
    let mut object = Map::new();
    insert_text(&mut object, "command", &culprit.command);
    let script_line = culprit.script_line.as_ref();
    insert_or_null(&mut object, "file", script_line.and_then(|script_line| script_line.path.0.as_deref()));
    object.insert("line".into(), script_line.and_then(|script_line| script_line.line).into());
    object.insert("count".into(), culprit.count.into());
    object.insert("text".into(), blame(culprit, &verdict.budget).into());
    let advice = culprit.advice.as_ref().map(|(title, fix)| json!({ "title": title, "fix": fix }));
    object.insert("advice".into(), advice.into());
    Value::Object(object)
}
