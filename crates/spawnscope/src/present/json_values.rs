//! Values of JSON that several outputs have.
//!
//! JSON strings are Unicode, but file names are bytes. Bytes that are not UTF-8 appear as U+FFFD in
//! the string, and a second key with the suffix `_hex` has all bytes in hexadecimal. No information
//! is lost, and the type of a key never changes.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::words::signal_name;
use crate::analyze::explain::report::Spent;
use crate::analyze::model::external_wait::ExternalWait;
use crate::analyze::model::launch::Outcome;
use crate::analyze::sites::callers::{CallSite, CallerCounts};
use crate::event::Nanos;

/// Returns how a process ended; `null` if that is unknown or if it is still running.
pub(super) fn exit(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Running | Outcome::Unknown => Value::Null,
        Outcome::Code(code) => json!({ "code": code, "signal": null }),
        Outcome::Signal { number, core_dumped } => {
            json!({ "code": null, "signal": signal_name(number), "number": number, "core_dumped": core_dumped })
        }
    }
}

pub(super) fn spent_value((what, time): &(Spent, Nanos)) -> Value {
    let mut object = Map::new();
    object.insert("on".into(), json_key(what).into());
    if let Spent::ExternalWait(_, Some(name)) = what {
        insert_text(&mut object, "process", name);
    }
    object.insert("ns".into(), time.0.into());
    Value::Object(object)
}

/// Returns a duration or an instant in nanoseconds, `null` if unknown.
pub(super) fn nanos(value: Option<Nanos>) -> Value {
    value.map(|value| value.0).into()
}

/// Returns an object that begins with a string, as `insert_text` adds it.
pub(super) fn with_text(key: &str, bytes: &[u8], rest: Value) -> Map<String, Value> {
    let mut object = Map::new();
    insert_text(&mut object, key, bytes);
    append(&mut object, rest);
    object
}

/// Adds a string like `insert_text`, or `null`.
pub(super) fn insert_or_null(object: &mut Map<String, Value>, key: &str, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => insert_text(object, key, bytes),
        None => drop(object.insert(key.to_owned(), Value::Null)),
    }
}

/// Adds a string, and its bytes if they are not UTF-8.
pub(super) fn insert_text(object: &mut Map<String, Value>, key: &str, bytes: &[u8]) {
    object.insert(key.to_owned(), String::from_utf8_lossy(bytes).into());
    if std::str::from_utf8(bytes).is_err() {
        object.insert(format!("{key}_hex"), hex(bytes).into());
    }
}

/// Adds an array of strings, and an array of their bytes if one of them is not UTF-8.
pub(super) fn insert_arguments<'a>(
    object: &mut Map<String, Value>,
    key: &str,
    arguments: impl Iterator<Item = &'a [u8]> + Clone,
) {
    let texts = arguments.clone().map(|argument| Value::from(String::from_utf8_lossy(argument)));
    object.insert(key.to_owned(), texts.collect());
    if arguments.clone().any(|argument| std::str::from_utf8(argument).is_err()) {
        object.insert(format!("{key}_hex"), arguments.map(|argument| Value::from(hex(argument))).collect());
    }
}

/// Appends all keys of another object, in order.
pub(super) fn append(object: &mut Map<String, Value>, more: Value) {
    if let Value::Object(more) = more {
        object.extend(more);
    }
}

pub fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Returns a value as several lines, the last of which ends with a newline.
pub fn text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns a call site as a JSON object. Unknown fields are `null`, as are `program` and `text` if
/// there is a file.
pub(super) fn call_site_value(call_site: &CallSite) -> Value {
    let mut object = Map::new();
    insert_or_null(&mut object, "file", call_site.file.as_deref());
    object.insert("line".into(), call_site.line.into());
    insert_or_null(&mut object, "function", call_site.function.as_deref());
    insert_or_null(&mut object, "module", call_site.module.as_deref());
    insert_or_null(&mut object, "program", call_site.program.as_deref());
    insert_or_null(&mut object, "text", call_site.text.as_deref());
    object.insert("language".into(), call_site.language.name().into());
    Value::Object(object)
}

/// Adds the call sites with the most launches, their counts, and the number of launches from other
/// call sites.
pub(super) fn insert_callers(object: &mut Map<String, Value>, counts: &CallerCounts) {
    let callers = counts.largest.iter().map(|(call_site, count)| {
        let mut caller = call_site_value(call_site);
        caller["count"] = (*count).into();
        caller
    });
    object.insert("callers".into(), callers.collect());
    object.insert("callers_others".into(), counts.others.into());
    object.insert("callers_unknown".into(), counts.unknown.into());
}

/// Returns the name of a part of the wall for JSON.
fn json_key(what: &Spent) -> &'static str {
    match what {
        Spent::Tax => "launch_tax",
        Spent::Run => "run",
        Spent::RunQueue => "run_queue",
        Spent::ExternalWait(ExternalWait::Timer, _) => "timer",
        Spent::ExternalWait(ExternalWait::Disk, _) => "disk",
        Spent::ExternalWait(ExternalWait::Network, _) => "network",
        Spent::ExternalWait(ExternalWait::Process(_), _) => "process",
        Spent::ExternalWait(ExternalWait::Scanner(_), _) => "scanner",
        Spent::ExternalWait(ExternalWait::Stopped, _) => "stopped",
        Spent::ExternalWait(ExternalWait::Recorder, _) => "recorder",
        Spent::ExternalWait(ExternalWait::Unknown, _) => "unknown",
    }
}
