//! Where launches come from: call sites, labels of builds, launches that are alike, and the choice
//! of launches that options of the command line name.

pub mod alike;
pub mod build_labels;
pub mod build_steps;
pub mod callers;
pub mod select;
