//! The requests to a worker, and its replies. Each is one line of JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Mechanism;
use crate::LabError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The number of bytes of memory to populate, in addition to the process's own.
    pub memory_bytes: u64,
    pub pages: Pages,
    /// The number of files to open, in addition to the process's own.
    pub open_files: u64,
    /// The limit on open files, which children inherit; `None` leaves it unchanged.
    pub files_limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    #[default]
    Small,
    Huge,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
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

    #[must_use]
    pub fn with_status(mut self, status: i32) -> Program {
        self.status = status;
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

/// The values of a performed request. A request that was performed incorrectly has none.
pub type Reply = Result<Vec<f64>, LabError>;
