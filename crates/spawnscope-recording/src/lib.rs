//! The recording: one SQLite file, which is the only interface between the collectors and the
//! analysis. `schema.sql` documents the format. `writer` stores events, which `assemble` combines
//! into rows, and `reader` reads the rows.

mod assemble;
mod claim;
mod contradictions;
mod destination;
mod ends;
mod error;
mod follower;
mod header;
mod intern;
mod limits;
mod log;
mod ninja;
mod numbered;
mod open;
pub mod reader;
mod redact;
mod schema;
mod store;
mod sums;
mod tables;
#[cfg(test)]
mod test_events;
mod trailer;
mod unfinished;
mod values;
mod version;
pub mod writer;

pub use ends::{Ending, FinishedFiles, Header, Memory, WriterOptions};
pub use error::RecordError;
pub use follower::{Follower, RowReceiver, follow};
#[cfg(fuzzing)]
pub use ninja::fuzz_ninja_log;
pub use numbered::numbered_file;
pub use open::is_recording;
pub use reader::RecordingFile;
pub use redact::Redaction;
pub use writer::Recorder;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
