//! From a recording to findings: pure functions on plain data, no I/O. `present` formats findings.
//!
//! Folders import only folders above them in this list, which `tests/layers.rs` checks:
//!
//! 1. [`model`]: launches, threads, and parts of a recording.
//! 2. [`waits`]: what ended each wait.
//! 3. `patterns`: commands and scripts that several folders recognize.
//! 4. [`sites`]: where launches come from, and which ones are meant.
//! 5. [`path`]: the critical path, and the wall time by program, line or phase.
//! 6. [`predict`]: the replay, and what-if.
//! 7. [`explain`]: cause, advice, and the report on one recording.
//! 8. [`compare`]: several recordings. [`live`]: launches while they are recorded.

pub mod compare;
pub mod explain;
pub mod live;
pub mod model;
pub mod path;
mod patterns;
pub mod predict;
pub mod sites;
pub mod waits;

pub use explain::causes::Causes;
pub use explain::report::{Report, report, report_on};
pub use model::slices::Slices;
pub use model::tree::Forest;
pub use path::critical_path::{CriticalPath, critical_path};
pub use path::groups::GroupBy;
pub use predict::replay::Replay;
pub use spawnscope_data::rows::{Origin, Scope, SliceRow, WakerRow};
pub use waits::Waits;
pub use waits::slice_collection::SliceCollection;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
