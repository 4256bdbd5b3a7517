//! The tests that need no collector, no privilege and no other files of the workspace, in one
//! program: it is linked once, and no CPU idles while one of them ends. `cargo test --test offline
//! cli::` runs a part.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod accel;
mod action;
mod cli;
mod compare;
#[cfg(feature = "parquet")]
mod dataset;
mod doctor;
mod exports;
mod harness;
mod import;
mod install_script;
mod installation;
mod json;
mod mcp;
mod messages;
mod untrusted;

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "support/attempts.rs"]
mod attempts;
#[path = "support/directory.rs"]
mod directory;
#[path = "support/golden.rs"]
mod golden;
#[path = "support/preload.rs"]
mod preload;
#[expect(dead_code, reason = "as above")]
#[path = "support/run.rs"]
mod run;
#[path = "support/stored.rs"]
mod stored;
#[path = "support/texts.rs"]
mod texts;
