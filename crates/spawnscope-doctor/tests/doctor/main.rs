//! The doctor's checks on fake machines: directories with the files of /proc, /sys and /etc that show a condition. Each check is tried with its
//! condition and without. Programs that must be started are started for real, in an environment of the test. Needs no privilege.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../../../spawnscope/tests/support/attempts.rs"]
mod attempts;
mod directories;
mod hardware;
mod launched;
mod library;
mod limits;
mod loader;
mod memory;
mod places;
mod security;
mod tree;
