//! From a recording to findings: pure functions on plain data, no I/O.
//! `tree` joins the rows to a forest of launches; `report` sums them up. `present` formats findings.

pub mod advice;
pub mod callers;
pub mod causes;
pub mod critical_path;
pub mod drift;
pub mod external_wait;
pub mod failures;
pub mod flame;
pub mod groups;
pub mod launch;
pub mod path_search;
pub mod phases;
pub mod replay;
pub mod report;
pub mod samples;
pub mod select;
pub mod slices;
pub mod summary;
pub mod timeline;
pub mod tree;
pub mod waits;
pub mod whatif;

mod compact;
mod grouped;
mod join;
mod known;
mod open_waits;
mod overlap;

pub use causes::Causes;
pub use critical_path::{CriticalPath, critical_path};
pub use replay::Replay;
pub use report::{GroupBy, Report, report, report_on};
pub use slices::Slices;
pub use spawnscope_data::rows::{Origin, Scope};
pub use timeline::SliceCollection;
pub use tree::Forest;
pub use waits::{WaitCollection, Waits};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
