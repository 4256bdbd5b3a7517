//! What a report says about a recording: its principal cause, what became slower, and advice.
//! `present` only words it.

pub mod advice;
pub mod causes;
pub mod drift;
pub mod report;
pub mod start_up;
pub mod tool_calls;
