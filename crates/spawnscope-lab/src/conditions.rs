//! Lists the conditions that differ between two reports. Each may be the cause of a change. The fields of the JSON are compared, so a new
//! field of `Machine` is a condition without further code.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::outcome::Report;

/// Load averages that differ by at least this much count as different.
const MIN_LOAD_DIFFERENCE: f64 = 1.0;

/// Returns a line for each differing condition. Conditions that only one report has are named together, because reports of different
/// versions may lack many.
pub(super) fn differing_conditions(old: &Report, new: &Report) -> Vec<String> {
    let [old, new] = [old, new].map(conditions);
    let (mut lines, mut unknown) = (Vec::new(), [Vec::new(), Vec::new()]);
    for (name, after) in &new {
        let before = old.get(name).unwrap_or(&Value::Null);
        let words = name.replace('_', " ");
        match (before, after) {
            _ if are_alike(name, before, after) => {}
            (Value::Null, _) => unknown[0].push(words),
            (_, Value::Null) => unknown[1].push(words),
            _ => lines.push(format!("{words}: {} -> {}", text(name, before), text(name, after))),
        }
    }
    for (which, names) in ["older", "newer"].into_iter().zip(unknown) {
        if !names.is_empty() {
            lines.push(format!("unknown in the {which} report: {}", names.join(", ")));
        }
    }
    lines
}

/// Returns the fields of the machine, and those of the report that describe how it was measured.
fn conditions(report: &Report) -> BTreeMap<String, Value> {
    let machine = serde_json::to_value(&report.machine).ok().and_then(|machine| machine.as_object().cloned());
    let mut fields: BTreeMap<String, Value> = machine.unwrap_or_default().into_iter().collect();
    fields.insert("quick".to_owned(), json!(report.quick));
    fields.insert("seconds_per_experiment".to_owned(), json!(report.seconds));
    fields.insert("interrupted".to_owned(), json!(report.interrupted));
    fields
}

fn are_alike(name: &str, before: &Value, after: &Value) -> bool {
    match (before.as_f64(), after.as_f64()) {
        (Some(before), Some(after)) if name.starts_with("load_") => (before - after).abs() < MIN_LOAD_DIFFERENCE,
        _ => before == after,
    }
}

fn text(name: &str, value: &Value) -> String {
    match value {
        Value::Bool(holds) => if *holds { "yes" } else { "no" }.to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(bytes) if name.ends_with("_bytes") => {
            spawnscope_data::units::bytes(bytes.as_u64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::*;

    #[test]
    fn differing_conditions_are_listed_and_unknown_ones_are_named() {
        let old = Report::new(Machine::read(), false);
        let mut new = old.clone();
        assert_eq!(differing_conditions(&old, &new), [""; 0]);
        new.quick = true;
        new.machine.kernel = "7.0".to_owned();
        new.machine.memory_bytes = Some(2_000_000_000);
        new.machine.load_before = Some(5.0);
        new.seconds = Some(1.5);
        let mut old = Report::new(Machine { memory_bytes: Some(1_000_000_000), ..old.machine }, false);
        assert_eq!(
            differing_conditions(&old, &new),
            [
                format!("kernel: {} -> 7.0", old.machine.kernel),
                "memory bytes: 1.00 GB -> 2.00 GB".to_owned(),
                "quick: no -> yes".to_owned(),
                "unknown in the older report: load before, seconds per experiment".to_owned(),
            ]
        );
        old.machine.load_before = Some(4.1);
        assert_eq!(differing_conditions(&old, &new).len(), 4, "loads that differ by less than 1 are alike");
    }
}
