//! The lab: measures what a launch costs on this machine, and what makes it slow. `experiments` has
//! one file per experiment, `worker` the launching processes, `batches` the rounds of measurements,
//! and `outcome` the results. Nothing here prints.

pub mod batches;
pub mod context;
pub mod experiments;
pub mod machine;
pub mod measurements;
pub mod outcome;
pub mod worker;

mod asked;
mod compiler;
mod fit;
mod runtimes;

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Debug, Error, Serialize, Deserialize)]
pub enum LabError {
    /// The machine lacks something, or does not permit it.
    #[error("{0}")]
    Unavailable(String),
    /// The case ran incorrectly, so its values are meaningless.
    #[error("invalid measurement: {0}")]
    Invalid(String),
}

impl LabError {
    /// Returns a function for `map_err`; `doing` is the action that failed.
    pub fn doing<E: Display>(doing: impl Display) -> impl Fn(E) -> LabError {
        move |error| LabError::Unavailable(format!("failed to {doing}: {error}"))
    }
}
