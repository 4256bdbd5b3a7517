//! The recording: one SQLite file between the collectors and everything else. `schema.sql` documents the format.
//! `writer` puts events in (through `assemble`, which joins them to rows), `reader` takes rows out.

mod aside;
mod assemble;
mod claim;
mod error;
mod fields;
mod intern;
pub mod reader;
mod redact;
mod rows;
#[cfg(test)]
mod sample;
mod stacks;
mod store;
mod tables;
mod unfinished;
mod version;
pub mod writer;

pub use error::RecordError;
pub use reader::RecordingFile;
pub use redact::Redaction;
pub use rows::{Ending, Header};
pub use writer::Recorder;
