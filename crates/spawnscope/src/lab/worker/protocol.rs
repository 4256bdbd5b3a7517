//! What a worker is told, one line of JSON each, and what it answers.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Mechanism;

/// What the launching process is to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Memory that it has touched, beyond its own.
    pub memory_bytes: u64,
    /// In what kind of pages.
    pub pages: Pages,
    /// Descriptors that it has open, beyond its own.
    pub open_files: u64,
    /// Its limit of open files, which its children inherit; as it is where nothing is said.
    pub files_limit: Option<u64>,
    /// Threads that sleep beside the one that launches.
    pub threads: u64,
}

/// A kind of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    /// Anonymous, in small pages.
    #[default]
    Small,
    /// Anonymous, in huge pages.
    Huge,
    /// A file that was read through a mapping.
    File,
}

/// What is launched, and what it must do for its launch to count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The file and its arguments.
    pub argv: Vec<String>,
    /// The exit status.
    pub status: i32,
    /// What it writes to a pipe that is read.
    pub says: String,
}

impl Program {
    /// One that ends with status 0 and writes nothing.
    #[must_use]
    pub fn new<A: AsRef<Path>>(argv: impl IntoIterator<Item = A>) -> Program {
        let text = |argument: A| argument.as_ref().display().to_string();
        Program {
            argv: argv.into_iter().map(text).collect(),
            status: 0,
            says: String::new(),
        }
    }

    /// It must end with this status.
    #[must_use]
    pub fn ends_with(mut self, status: i32) -> Program {
        self.status = status;
        self
    }

    /// It must write this.
    #[must_use]
    pub fn says(mut self, word: &str) -> Program {
        word.clone_into(&mut self.says);
        self
    }
}

/// Positions in the answer to `Request::Launch`.
pub const WALL: usize = 0;
/// Likewise: user and system time together.
pub const CPU: usize = 2;
/// Likewise: system time alone.
pub const SYSTEM: usize = 4;
/// Position in the answer to `Request::Stall`.
pub const STALL: usize = 1;

/// Something to do. All times are nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Launch and wait, so many times, and once before that does not count where these are more than one: medians of wall and of time inside the call; means of all, user and system CPU
    /// time, children's included.
    Launch {
        /// How.
        mechanism: Mechanism,
        /// What.
        program: Program,
        /// How often.
        count: u32,
    },
    /// Touch so much more memory: nothing.
    Grow {
        /// How much.
        bytes: u64,
    },
    /// Launch while another thread maps and unmaps memory, as often as above, medians over launches: wall, the longest that
    /// this thread stood still, time inside the call.
    Stall {
        /// How.
        mechanism: Mechanism,
        /// What.
        program: Program,
        /// How often.
        count: u32,
    },
    /// The same where nothing is launched, medians over pauses: how long they were, the longest that the other thread stood still.
    Idle {
        /// Of each pause, in which the thread that else launches sleeps.
        pause_ns: f64,
        /// How often.
        count: u32,
    },
    /// Keep so many in flight from each of so many threads: launches a second, from when all are in flight.
    Throughput {
        /// How.
        mechanism: Mechanism,
        /// What.
        program: Program,
        /// Threads that launch.
        threads: u32,
        /// Children of each thread at a time.
        in_flight: u32,
        /// Launches in all.
        count: u32,
    },
    /// Launch all of these files at once: how long each took until it was reaped, in order of their ends.
    AllAtOnce {
        /// The files.
        paths: Vec<String>,
        /// What each ends with.
        status: i32,
    },
    /// Write to all the memory before a launch, while the child lives, and after the end of another in whose life nothing
    /// was written: three times.
    Rewrite {
        /// The child.
        child: Companion,
    },
}

/// A child that lives as long as its parent wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Companion {
    /// A fork that never calls exec: a snapshot.
    Copy,
    /// Another program.
    Program {
        /// How.
        mechanism: Mechanism,
        /// One that ends, with status 0, when the file does that it is given the name of.
        program: Program,
    },
}

/// What a worker answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It was done.
    Done(Vec<f64>),
    /// It cannot be done here.
    Unavailable(String),
    /// It was done, but not as it should have been.
    Untrusted(String),
}
