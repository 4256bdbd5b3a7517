//! Process spawning whose cost does not depend on the parent's memory, threads or open files.
//!
//! A child is created with `clone3(CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_CLEAR_SIGHAND)` on
//! its own stack: page tables are not copied, none of the parent's handlers run in it, and it is
//! waited for and killed through its pidfd. The crate never forks unless [`Mechanism::Fork`]
//! requests it.
//!
//! ```
//! let output = vspawn::Command::new("echo").arg("hello").output()?;
//! assert_eq!(output.stdout, b"hello\n");
//! # Ok::<(), vspawn::Error>(())
//! ```
//!
//! Data goes one way: `request` and `command` (with `actions` and `attributes`: what the caller
//! asks for) -> `plan` (all allocation) -> `child` (what runs between clone and exec, in shared
//! memory) -> `workspace` (the memory lent to it) -> `process` (its handle) -> `launch` (the
//! parent's side of clone) -> `prepared` (the ways to start). `capture`, `pipeline`, `terminal` and
//! `asynchronous` use handles.

mod actions;
mod arch;
mod attributes;
mod capture;
mod child;
mod command;
mod error;
mod launch;
mod pipeline;
mod plan;
mod prepared;
mod process;
mod request;
mod stdio;
mod sys;
mod terminal;
mod workspace;

#[cfg(feature = "tokio")]
mod asynchronous;

#[cfg(feature = "tokio")]
pub use asynchronous::AsyncChild;
pub use capture::Capture;
pub use capture::exchange::Captured;
pub use command::{Command, CommandArgs, CommandEnvs};
pub use error::{Error, Stage};
pub use pipeline::{Pipeline, PipelineOutput, RunningPipeline};
pub use prepared::Prepared;
pub use process::Child;
pub use request::Mechanism;
pub use stdio::{ChildStderr, ChildStdin, ChildStdout, Stdio};

/// Pseudo-terminals: a child with a controlling terminal, without a fork. `posix_spawn` has no
/// TIOCSCTTY, so other libraries fork for it, which costs a copy of the parent's page tables.
pub mod pty {
    #[cfg(feature = "tokio")]
    pub use crate::asynchronous::AsyncPty;
    pub use crate::terminal::{Pty, Size};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
