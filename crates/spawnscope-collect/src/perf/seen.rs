//! What /proc says about a program shortly after its exec: arguments, directory, and the file as it was named. The reader looks as soon
//! as it gets the record, but a process may have ended or executed another program by then.

use std::fs;

use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::{clock, procfs};

use crate::scripts;

/// Bytes of arguments that are kept, as with the other collectors.
const MAX_ARGUMENTS: usize = 4096;

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// When it had been read. It belongs to an exec if the process had neither ended nor executed anything else by then.
    pub(super) by: Nanos,
    /// Arguments, each NUL-terminated, up to `MAX_ARGUMENTS`.
    pub(super) argv: Vec<u8>,
    /// Bytes of all arguments.
    pub(super) argv_bytes: u64,
    /// The file passed to `execve`; `None` without the right to read the process's memory.
    pub(super) path: Option<Vec<u8>>,
    /// The interpreter of a `#!` script.
    pub(super) interpreter: Option<Vec<u8>>,
    /// The working directory.
    pub(super) cwd: Option<Vec<u8>>,
}

impl Seen {
    /// Looks at a process. `None` if it has ended, or its exec has not set its arguments up yet.
    pub(super) fn of(process: Pid) -> Option<Seen> {
        let mut argv = fs::read(format!("/proc/{}/cmdline", process.0)).ok()?;
        if argv.is_empty() {
            return None;
        }
        let argv_bytes = argv.len() as u64;
        argv.truncate(MAX_ARGUMENTS);
        let path = procfs::program(process).filter(|path| !path.is_empty());
        let interpreter = path
            .as_ref()
            .and_then(|path| scripts::interpreter(process, &argv, path));
        Some(Seen {
            path,
            interpreter,
            cwd: procfs::working_directory(process),
            argv,
            argv_bytes,
            by: clock::now(),
        })
    }
}
