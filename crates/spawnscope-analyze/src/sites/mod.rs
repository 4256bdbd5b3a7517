//! Where launches come from: call sites, labels and steps of builds, and similar siblings. Also
//! selects the launches that a command-line option names.

pub mod alike;
pub mod build_labels;
pub mod build_steps;
pub mod callers;
pub mod select;
