//! The lab: measures what a launch costs on this machine, and what makes it slow. `experiments` has
//! one file per experiment, `worker` the launching processes, `harness` the rounds of measurements,
//! and `outcome` the results. Nothing here prints.

pub mod context;
pub mod experiments;
pub mod harness;
pub mod machine;
pub mod memory;
pub mod outcome;
pub mod worker;

mod batches;
mod compiler;
mod copies;
mod fit;
mod shell;

use std::io;

use thiserror::Error;

/// Why something was not measured.
#[derive(Debug, Error)]
pub enum LabError {
    /// The machine lacks something, or does not permit it.
    #[error("{0}")]
    Unavailable(String),
    /// The case ran incorrectly, so its values are meaningless.
    #[error("invalid measurement: {0}")]
    Invalid(String),
    #[error("failed to {doing}: {source}")]
    System { doing: String, source: io::Error },
}

impl LabError {
    /// Returns a function for `map_err`; `doing` is the action that failed.
    pub fn doing(doing: impl Into<String>) -> impl Fn(io::Error) -> LabError {
        let doing = doing.into();
        move |source| LabError::System { doing: doing.clone(), source }
    }
}
