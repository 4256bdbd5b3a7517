//! The lab: what a launch costs on this machine, and what makes it dear. One file an experiment in `experiments`; `worker` are
//! the processes that launch, `harness` decides how often, `outcome` is what comes out. Prints nothing.

pub mod common_shift;
pub mod compare;
pub mod context;
pub mod experiments;
pub mod harness;
pub mod keeper;
pub mod machine;
pub mod outcome;
pub mod worker;

mod batches;
mod compiler;
mod conditions;
mod copies;
mod disk;
mod effect;
mod fit;
pub mod linearity;
pub mod memory;
pub mod run_conditions;
mod shell;
mod tiny;

use std::io;

use thiserror::Error;

/// Why something was not measured.
#[derive(Debug, Error)]
pub enum LabError {
    /// The machine does not have what it takes, or does not let it be done.
    #[error("{0}")]
    Unavailable(String),
    /// It ran, but not as it should have: the figures would mean nothing.
    #[error("cannot be trusted: {0}")]
    Untrusted(String),
    /// A system call failed.
    #[error("failed to {doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// Why not.
        source: io::Error,
    },
}

impl LabError {
    /// For `map_err`: what was being done.
    pub fn doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
        move |source| LabError::System {
            doing: doing.into(),
            source,
        }
    }
}
