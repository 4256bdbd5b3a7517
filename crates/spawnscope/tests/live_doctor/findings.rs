//! Searches the doctor's findings, for tests that run the doctor several times.

use serde_json::Value;

use crate::examination::Examination;
use crate::support::attempts::ok_if;

/// Returns the first finding with this severity whose title, evidence and fix contain all these
/// words.
pub fn find(examination: &Examination, severity: &str, words: &[&str]) -> Result<Value, String> {
    let finding = examination.findings_with(words).find(|finding| finding["severity"] == severity).cloned();
    finding.ok_or_else(|| format!("no {severity} with {words:?} in {}", describe(examination)))
}

/// Checks that there is no finding of any severity.
pub fn check_silence(examination: &Examination) -> Result<(), String> {
    ok_if(examination.findings().is_empty(), || describe(examination))
}

/// Checks that these launches were timed.
pub fn check_timed(examination: &Examination, what: &[&str]) -> Result<(), String> {
    let untimed: Vec<_> = what.iter().filter(|what| examination.cost(what).is_none()).collect();
    ok_if(untimed.is_empty(), || format!("{untimed:?} was not timed: {}", describe(examination)))
}

/// Returns the complete output, for messages.
pub fn describe(examination: &Examination) -> String {
    format!("{}, unseen: {}", Value::from(examination.findings()), examination.unseen())
}
