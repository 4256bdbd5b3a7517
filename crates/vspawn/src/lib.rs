//! Process spawning whose cost does not depend on the parent's memory, threads or open files.
//!
//! A child is created with `clone3(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND)` on a stack of its own: no
//! page table is copied, no handler of the parent's runs in it, and it is waited for and killed through its pidfd. It never
//! forks unless that is asked for by name ([`Mechanism::Fork`]).
//!
//! ```
//! let output = vspawn::Command::new("echo").arg("hello").output()?;
//! assert_eq!(output.stdout, b"hello\n");
//! # Ok::<(), vspawn::Error>(())
//! ```
//!
//! One way through the files: `command` (what was asked) -> `prepared` and `plan` (all allocation) -> `launch` (the parent's side
//! of clone) -> `child` (what runs between clone and exec, in shared memory) -> `process` (the child's handle).

mod arch;
mod capture;
mod child;
mod command;
mod descriptors;
mod error;
mod guards;
mod launch;
mod pipeline;
mod plan;
mod prepared;
mod process;
mod stdio;
mod sys;
mod tree;
mod workspace;

#[cfg(feature = "tokio")]
mod asynchronous;

pub use capture::{Capture, Captured};
pub use command::{Command, Mechanism};
pub use error::{Error, Stage};
pub use pipeline::{Pipeline, RunningPipeline};
pub use prepared::Prepared;
pub use process::Child;
pub use stdio::{ChildStderr, ChildStdin, ChildStdout, Stdio};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
