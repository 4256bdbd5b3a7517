//! The recordings in `tests/recordings` as databases, for tests that need no collector.

use std::path::Path;

use rusqlite::Connection;

const SCHEMA: &str = include_str!("../../../spawnscope-recording/src/schema.sql");
/// A shell that launches `true`.
pub const TWO_LAUNCHES: &str = include_str!("../recordings/two_launches.sql");
/// A script that runs `dirname` and `mv` for each of ten files.
pub const BEFORE: &str = include_str!("../recordings/relocate_before.sql");
/// The same work, with one `mv` for each of two directories.
pub const AFTER: &str = include_str!("../recordings/relocate_after.sql");

/// The verbs that read one recording. `diff` and `check`, which compare several, open them in the
/// same way.
pub const READERS: [&[&str]; 10] = [
    &["report"],
    &["report", "--json"],
    &["advise"],
    &["advise", "--patch"],
    &["whatif", "--cpus", "4"],
    &["tree"],
    &["flame", "--folded"],
    &["export", "--format", "ndjson"],
    &["export", "--format", "perfetto", "-o", "-"],
    &["html", "-o", "/dev/null"],
];

/// Creates a recording with these rows.
pub fn create_recording(file: &Path, rows: &str) {
    execute(file, &format!("{SCHEMA}{rows}"));
}

/// Changes a recording by SQL.
pub fn execute(file: &Path, sql: &str) {
    Connection::open(file).unwrap().execute_batch(sql).unwrap();
}
