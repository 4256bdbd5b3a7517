//! Process spawning whose cost does not depend on the parent's memory, threads or open files.
//!
//! A child is created with `clone3(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND)` on its own stack: page tables are
//! not copied, none of the parent's handlers run in it, and it is waited for and killed through its pidfd. The crate never forks
//! unless [`Mechanism::Fork`] requests it.
//!
//! ```
//! let output = vspawn::Command::new("echo").arg("hello").output()?;
//! assert_eq!(output.stdout, b"hello\n");
//! # Ok::<(), vspawn::Error>(())
//! ```
//!
//! A launch goes through these files: `command`, `actions` and `attributes` (the request) -> `start` -> `prepared` and `plan` (all
//! allocation) -> `launch` (the parent's side of clone) -> `child` (what runs between clone and exec, in shared memory) -> `process` (the
//! child's handle).

mod actions;
mod arch;
mod attributes;
mod capture;
mod child;
mod command;
mod create;
mod descriptors;
mod dumpable;
mod environment;
mod error;
mod guards;
mod handle;
mod inspect;
mod launch;
mod pipeline;
mod plan;
mod prepared;
mod process;
pub mod pty;
mod start;
mod stdio;
mod sys;
mod tree;
mod workspace;

#[cfg(feature = "tokio")]
mod asynchronous;

pub use capture::{Capture, Captured};
pub use command::{Command, Mechanism};
pub use error::{Error, Stage};
pub use inspect::{CommandArgs, CommandEnvs};
pub use pipeline::{Pipeline, RunningPipeline};
pub use prepared::Prepared;
pub use process::Child;
pub use stdio::{ChildStderr, ChildStdin, ChildStdout, Stdio};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
