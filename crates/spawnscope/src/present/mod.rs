//! Turns results into text or bytes, with pure functions. No analysis happens here, and no function
//! knows the terminal: callers pass a width and strip styles.

pub mod advice;
pub mod bounded;
pub mod check;
#[cfg(feature = "parquet")]
pub mod dataset;
pub mod diff;
pub mod doctor;
pub mod flame;
pub mod groupings;
pub mod headline;
pub mod html;
pub mod json;
pub mod json_values;
pub mod lab;
pub mod ndjson;
pub mod otlp;
pub mod patch;
pub mod perfetto;
pub mod prometheus;
pub mod shell;
pub mod summary;
pub mod table;
pub mod text;
#[cfg(feature = "top")]
pub mod top;
pub mod tree;
pub mod verdict;
pub mod whatif;
pub use crate::units;

mod critical;
mod finding_ids;
mod findings;
mod markdown;
mod page;
mod words;

pub use words::signal_name;
