//! Several recordings: two versions of a command, and budgets.

pub mod budgets;
pub mod diff;
