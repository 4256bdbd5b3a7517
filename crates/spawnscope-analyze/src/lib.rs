//! From a recording to findings: pure functions on plain data, no I/O. `present` formats findings.
//!
//! Modules import only modules above them in this list, which `tests/layers.rs` checks:
//!
//! 1. Containers: [`known`](launch::MaybeKnown), `compact`, `grouped`.
//! 2. Launches: [`phases`], [`frames`], [`launch`], [`pieces`], `join`, [`tree`], [`tree_view`].
//! 3. Threads: [`external_wait`], [`slices`], `unknown_waits`, [`timeline`], `child_waits`, `polling`, `event_loops`, `open_waits`,
//!    [`slice_collection`], [`reconstruct`].
//! 4. A part of a recording, as a recording of its own: [`window`].
//! 5. Patterns that several stages recognize: `patterns`.
//! 6. One question each: [`callers`], [`build_labels`], [`alike`], [`concurrency`], [`select`], [`samples`], [`failed_execs`], [`drift`], [`waits`].
//! 7. The wall: [`critical_path`], [`spent`], [`flame`], [`summary`], [`groups`].
//! 8. Predictions: [`replay`], [`whatif`], [`dependence`], [`advice`].
//! 9. The results for one recording: [`causes`], [`report`]; launches while they are recorded: [`live`].
//! 10. Several recordings: [`diff`], [`budgets`].

pub mod advice;
pub mod alike;
pub mod budgets;
pub mod build_labels;
pub mod callers;
pub mod causes;
pub mod concurrency;
pub mod critical_path;
pub mod dependence;
pub mod diff;
pub mod drift;
pub mod external_wait;
pub mod failed_execs;
pub mod flame;
pub mod frames;
pub mod groups;
pub mod launch;
pub mod live;
pub mod phases;
pub mod pieces;
pub mod reconstruct;
pub mod replay;
pub mod report;
pub mod samples;
pub mod select;
pub mod slice_collection;
pub mod slices;
pub mod spent;
pub mod summary;
pub mod timeline;
pub mod tree;
pub mod tree_view;
pub mod waits;
pub mod whatif;
pub mod window;

mod child_waits;
mod compact;
mod event_loops;
mod grouped;
mod join;
mod known;
mod open_waits;
mod patterns;
mod polling;
mod unknown_waits;

pub use causes::Causes;
pub use critical_path::{CriticalPath, critical_path};
pub use groups::GroupBy;
pub use replay::Replay;
pub use report::{Report, report, report_on};
pub use slice_collection::SliceCollection;
pub use slices::Slices;
pub use spawnscope_data::rows::{Origin, Scope};
pub use tree::Forest;
pub use waits::{WaitCollection, Waits};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
