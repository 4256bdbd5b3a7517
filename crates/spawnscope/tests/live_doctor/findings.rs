//! Searches the doctor's findings, for tests that run the doctor several times.

use serde_json::Value;

use crate::examined::Examined;
use crate::support::attempts::ok_if;

/// The first finding with this severity whose title, evidence and fix contain all these words.
pub fn found(examined: &Examined, severity: &str, words: &[&str]) -> Result<Value, String> {
    let finding = examined
        .with(words)
        .find(|finding| finding["severity"] == severity)
        .cloned();
    finding.ok_or_else(|| format!("no {severity} with {words:?} in {}", described(examined)))
}

/// Checks that there is no finding of any severity.
pub fn silent(examined: &Examined) -> Result<(), String> {
    ok_if(examined.all().is_empty(), || described(examined))
}

/// Checks that these launches were timed.
pub fn timed(examined: &Examined, what: &[&str]) -> Result<(), String> {
    let untimed: Vec<_> = what.iter().filter(|what| examined.cost(what).is_none()).collect();
    ok_if(untimed.is_empty(), || {
        format!("{untimed:?} was not timed: {}", described(examined))
    })
}

/// The whole output, for messages.
pub fn described(examined: &Examined) -> String {
    format!("{}, unseen: {}", Value::from(examined.all()), examined.unseen())
}
