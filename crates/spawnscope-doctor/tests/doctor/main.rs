//! Tests of the doctor's checks on fake machines: directories with the files of /proc, /sys and
//! /etc that show a condition. Each check runs with its condition and without. Checks that start
//! programs do so on the real machine, in an environment of the test. The tests need no privilege.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../../../spawnscope/tests/support/attempts.rs"]
mod attempts;
mod directories;
mod git;
mod hardware;
mod launched;
mod limits;
mod loader;
mod memory;
mod security;
mod slow_directories;
mod tree;
