//! Tests the outputs for recordings that are built by hand, and runs the shell code that their
//! advice suggests in real shells. These tests need no privileges, no kernel feature, and no files
//! except `tests/golden`. The tests of the analysis itself are in crates/spawnscope-analyze.

#![expect(clippy::unwrap_used, reason = "test helpers: a panic fails the test")]

mod advice_both_forms;
mod attribution;
mod callers;
mod drift;
mod flame;
mod golden;
mod hostile;
mod html;
mod open_ends;
mod path_search;
mod prelude;
mod printed;
mod report;
mod samples;
mod screen;
mod shown;
mod tree;
mod verdict;

#[path = "../support/golden.rs"]
mod golden_files;
#[path = "../support/texts.rs"]
mod texts;

// Shared with the tests of spawnscope-analyze.
#[expect(dead_code, reason = "spawnscope-analyze uses the rest")]
#[path = "../../../spawnscope-analyze/tests/analysis/builder.rs"]
mod builder;
#[path = "../../../spawnscope-analyze/tests/analysis/recordings.rs"]
mod recordings;
#[expect(dead_code, reason = "spawnscope-analyze uses the rest")]
#[path = "../../../spawnscope-analyze/tests/analysis/serial.rs"]
mod serial;
#[expect(dead_code, reason = "spawnscope-analyze uses the rest")]
#[path = "../../../spawnscope-analyze/tests/analysis/slices.rs"]
mod slices;
