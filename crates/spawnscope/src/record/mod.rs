//! The recording: one SQLite file between the collectors and everything else. `schema.sql` documents the format. `writer` stores events
//! (through `assemble`, which joins them to rows), and `reader` reads the rows.

mod assemble;
mod checksum;
mod claim;
mod contradictions;
mod destination;
mod error;
mod fields;
mod folder;
mod header;
mod intern;
mod limits;
mod log;
mod manner;
mod open;
pub mod reader;
mod redact;
mod rows;
#[cfg(test)]
mod sample;
mod schema;
mod stacks;
mod store;
mod sums;
mod tables;
mod trailer;
mod unfinished;
mod values;
mod version;
pub mod writer;

pub use error::RecordError;
pub use manner::{Manner, Memory};
pub use open::is_recording;
pub use reader::RecordingFile;
pub use redact::Redaction;
pub use rows::{Ending, Finished, Header};
pub use writer::Recorder;
