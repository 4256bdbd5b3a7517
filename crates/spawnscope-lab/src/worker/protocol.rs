//! The requests to a worker, one line of JSON each, and its replies.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Mechanism;

/// The properties of the launching process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Memory to populate, in addition to its own.
    pub memory_bytes: u64,
    /// The kind of pages of that memory.
    pub pages: Pages,
    /// Descriptors to open, in addition to its own.
    pub open_files: u64,
    /// The limit on open files, which children inherit; `None`: unchanged.
    pub files_limit: Option<u64>,
    /// Sleeping threads, in addition to the launching one.
    pub threads: u64,
}

/// A kind of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// Anonymous memory in small pages.
    #[default]
    Small,
    /// Anonymous memory in huge pages.
    Huge,
    /// A mapped file that has been read.
    File,
}

/// The launched program, and how to verify that it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The file and its arguments.
    pub argv: Vec<String>,
    /// The expected exit status.
    pub status: i32,
    /// The expected output, if it is read from a pipe.
    pub says: String,
}

impl Program {
    /// A program that exits with status 0 and writes nothing.
    #[must_use]
    pub fn new<A: AsRef<Path>>(argv: impl IntoIterator<Item = A>) -> Program {
        let text = |argument: A| argument.as_ref().display().to_string();
        Program {
            argv: argv.into_iter().map(text).collect(),
            status: 0,
            says: String::new(),
        }
    }

    /// Sets the expected exit status.
    #[must_use]
    pub fn ends_with(mut self, status: i32) -> Program {
        self.status = status;
        self
    }

    /// Sets the expected output.
    #[must_use]
    pub fn says(mut self, word: &str) -> Program {
        word.clone_into(&mut self.says);
        self
    }
}

/// The index of the wall time in the reply to `Request::Launch`.
pub const WALL: usize = 0;
/// The index of the CPU time, user and system together.
pub const CPU: usize = 2;
/// The index of the system time.
pub const SYSTEM: usize = 4;
/// The index of the stall in the reply to `Request::Stall`.
pub const STALL: usize = 1;

/// A request. All times are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Launch and wait `count` times. If that is more than once, an uncounted launch precedes them. Replies with the medians of wall and of
    /// the time inside the call, and the means of total, user and system CPU time, including children.
    Launch {
        /// The mechanism.
        mechanism: Mechanism,
        /// The program.
        program: Program,
        /// The number of launches.
        count: u32,
    },
    /// Populate more memory. Replies without values.
    Grow {
        /// The number of bytes.
        bytes: u64,
    },
    /// Launch as for `Launch` while another thread maps and unmaps memory. Replies with medians over launches: wall, the other thread's
    /// longest pause, time inside the call.
    Stall {
        /// The mechanism.
        mechanism: Mechanism,
        /// The program.
        program: Program,
        /// The number of launches.
        count: u32,
    },
    /// As `Stall`, but pause instead of launching. Replies with medians over pauses: their length, and the other thread's longest pause.
    Idle {
        /// The length of each pause, during which the launching thread sleeps.
        pause_ns: f64,
        /// The number of pauses.
        count: u32,
    },
    /// Keep `in_flight` children of each thread running. Replies with the launches per second, from the time when all are in flight.
    Throughput {
        /// The mechanism.
        mechanism: Mechanism,
        /// The program.
        program: Program,
        /// The number of launching threads.
        threads: u32,
        /// The number of running children per thread.
        in_flight: u32,
        /// The total number of launches.
        count: u32,
    },
    /// Launch all of these files at once. Replies with the time of each until it was reaped, in order of their ends.
    AllAtOnce {
        /// The files.
        paths: Vec<String>,
        /// The expected exit status of each.
        status: i32,
    },
    /// Write to all memory three times: before a launch, while the child lives, and after the end of another child, during whose life
    /// nothing was written. Replies with the three times.
    Rewrite {
        /// The child.
        child: Companion,
    },
}

/// A child that lives as long as its parent wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Companion {
    /// A fork without exec: a snapshot.
    Copy,
    /// Another program.
    Program {
        /// The mechanism.
        mechanism: Mechanism,
        /// A program that exits with status 0 at the end of the file that it gets as an argument.
        program: Program,
    },
}

/// A worker's reply.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The request was performed, with these values.
    Done(Vec<f64>),
    /// The request cannot be performed here.
    Unavailable(String),
    /// The request was performed incorrectly.
    Invalid(String),
}
