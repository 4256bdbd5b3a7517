//! The requests to a worker, and its replies. Each is one line of JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Mechanism;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The number of bytes of memory to populate, in addition to the process's own.
    pub memory_bytes: u64,
    /// The kind of pages of the populated memory.
    pub pages: Pages,
    /// The number of files to open, in addition to the process's own.
    pub open_files: u64,
    /// The limit on open files, which children inherit; `None` leaves it unchanged.
    pub files_limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// Anonymous memory in small pages.
    #[default]
    Small,
    /// Anonymous memory in huge pages.
    Huge,
}

/// The launched program, and how to verify that it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The file and its arguments.
    pub argv: Vec<String>,
    pub status: i32,
    /// The expected output, if it is read from a pipe.
    pub output: String,
}

impl Program {
    /// Returns a program that is expected to exit with status 0 and to write nothing.
    pub fn new<A: AsRef<Path>>(argv: impl IntoIterator<Item = A>) -> Program {
        Program {
            argv: argv.into_iter().map(|argument| argument.as_ref().display().to_string()).collect(),
            status: 0,
            output: String::new(),
        }
    }

    /// Sets the expected exit status.
    #[must_use]
    pub fn with_status(mut self, status: i32) -> Program {
        self.status = status;
        self
    }

    #[must_use]
    pub fn with_output(mut self, output: &str) -> Program {
        output.clone_into(&mut self.output);
        self
    }
}

/// The index of the wall time in the reply to `Request::Launch`.
pub const WALL: usize = 0;
/// The index of the total CPU time in the reply to `Request::Launch`.
pub const CPU: usize = 2;
/// The index of the system CPU time in the reply to `Request::Launch`.
pub const SYSTEM: usize = 4;
/// A request. All times are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Launch and wait `count` times. If `count` is more than one, an uncounted launch comes first.
    /// The reply has the medians of the wall and of the time inside the call, and the means of
    /// total, user and system CPU time, including children.
    Launch { mechanism: Mechanism, program: Program, count: u32 },
    /// Populate more memory. The reply has no values.
    Grow { bytes: u64 },
    /// Launch all of these files concurrently. The reply has the time of each until it was reaped,
    /// in the order in which they were reaped.
    Concurrent { paths: Vec<String>, status: i32 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The request was performed, and has these values.
    Done(Vec<f64>),
    /// The request cannot be performed here.
    Unavailable(String),
    /// The request was performed incorrectly, so it has no valid values.
    Invalid(String),
}
