//! Reads a recording as users do: through `report --json` and `export --format ndjson`.

use std::ffi::OsStr;
use std::path::Path;

use serde_json::Value;

use super::launches::Launches;
use super::run::{Finished, Record, spawnscope};
use super::workloads::Truth;

/// Runs a verb on a recording. The verb must succeed.
#[track_caller]
pub fn read(verb: &[&str], file: &Path) -> Finished {
    spawnscope(verb.iter().map(OsStr::new).chain([file.as_os_str()])).expect_code(0)
}

/// Whether a text is anywhere in the file of a recording.
pub fn contains(file: &Path, text: &str) -> bool {
    let bytes = std::fs::read(file).expect("the recording");
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// Returns the report of a recording, as JSON.
pub fn report(file: &Path) -> Value {
    let report = read(&["report", "--json"], file).json();
    assert_eq!(report["schema_version"], 1);
    report
}

/// Returns the advice for a recording.
pub fn advice(file: &Path) -> Vec<Value> {
    let advice = read(&["advise", "--json"], file).json();
    advice["advice"].as_array().expect("an array").clone()
}

/// Returns the row of a command in a report.
#[track_caller]
pub fn row_of<'r>(report: &'r Value, command: &str) -> &'r Value {
    let mut rows = report["commands"].as_array().expect("commands").iter();
    let row = rows.find(|row| row["command"] == command);
    row.unwrap_or_else(|| panic!("no row for {command}: {report}"))
}

/// Returns all launches of a recording.
pub fn launches(file: &Path) -> Launches {
    Launches::parse(&read(&["export", "--format", "ndjson"], file).stdout)
}

impl Record {
    /// Records a command, which must succeed. Returns what it printed, and its launches.
    #[track_caller]
    pub fn truth_and_launches(&self, traced: impl IntoIterator<Item = impl AsRef<OsStr>>) -> (Truth, Launches) {
        let truth = Truth::new(&self.run(traced).expect_code(0).stdout);
        (truth, launches(&self.file()))
    }
}
