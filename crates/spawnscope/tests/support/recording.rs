//! Reads a recording as users do: through `report --json` and `export --format ndjson`.

use std::path::Path;

use serde_json::Value;

use super::launches::Launches;
use super::run::spawnscope;

/// Returns the report of a recording, as JSON.
pub fn report(file: &Path) -> Value {
    let report = spawnscope(["report".as_ref(), "--json".as_ref(), file.as_os_str()]).expect_code(0);
    let report: Value = serde_json::from_slice(&report.stdout).expect("the report is JSON");
    assert_eq!(report["schema_version"], 1);
    report
}

/// Returns all launches of a recording.
pub fn launches(file: &Path) -> Launches {
    let arguments = ["export", "--format", "ndjson"].map(AsRef::as_ref);
    let lines = spawnscope(arguments.into_iter().chain([file.as_os_str()])).expect_code(0);
    Launches::parse(&lines.stdout)
}
