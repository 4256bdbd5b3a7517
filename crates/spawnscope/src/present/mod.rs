//! From findings to what people and programs read: pure functions that write text or bytes.
//! Nothing here decides what is counted, and nothing knows of a terminal: callers give a width and strip colour.

pub mod advice;
pub mod doctor;
pub mod flame;
pub mod json;
pub mod lab;
pub mod ndjson;
pub mod perfetto;
pub mod summary;
pub mod table;
pub mod text;
pub mod tree;
pub mod verdict;
pub mod whatif;
pub use crate::units;

mod callers;
mod columns;
mod critical;
mod findings;
mod page;
mod palette;
mod syscalls;
mod waited;
mod words;

pub use words::signal_name;
