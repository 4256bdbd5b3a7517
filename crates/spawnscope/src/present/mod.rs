//! From findings to what people and programs read: pure functions that write text or bytes.
//! Nothing here decides what is counted, and nothing knows of a terminal: callers give a width and strip colour.

pub mod advice;
pub mod doctor;
pub mod flame;
pub mod json;
pub mod lab;
pub mod ndjson;
pub mod perfetto;
pub mod table;
pub mod text;
pub mod tree;
pub use crate::units;
pub mod whatif;

mod callers;
mod columns;
mod critical;
mod findings;
mod page;
mod palette;
mod syscalls;
mod waited;
mod words;
