//! The doctor's checks on machines that are made up: folders with the files of /proc, /sys and /etc that a condition shows in. Each
//! check is tried with its condition and without. What has to be launched to be seen is launched for real, in an environment of the
//! test's. Needs no privilege.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "../support/attempts.rs"]
mod attempts;
mod directories;
mod golden;
mod hardware;
mod launched;
mod library;
mod limits;
mod loader;
mod memory;
mod places;
mod security;
mod tree;
