//! A command that `top` watches shares the terminal with it. While the command is started, standard streams that are this terminal lead to
//! nowhere, so that it inherits these; streams that the user redirected stay.

use std::fs::OpenOptions;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// The streams that were replaced. Restores them when dropped.
pub struct QuietCommand {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl QuietCommand {
    /// Replaces the streams if there is a command.
    ///
    /// # Errors
    /// When a stream cannot be replaced.
    pub fn begin(has_command: bool) -> Result<QuietCommand> {
        let mut quiet = QuietCommand {
            stdin: None,
            stdout: None,
            stderr: None,
        };
        if !has_command {
            return Ok(quiet);
        }
        let failed = "failed to keep the command's output off the screen";
        let nowhere = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/null")
            .context(failed)?;
        quiet.stdin = kept(stdin()).context(failed)?;
        quiet.stdout = kept(stdout()).context(failed)?;
        quiet.stderr = kept(stderr()).context(failed)?;
        if quiet.stdin.is_some() {
            dup2_stdin(&nowhere).context(failed)?;
        }
        if quiet.stdout.is_some() {
            dup2_stdout(&nowhere).context(failed)?;
        }
        if quiet.stderr.is_some() {
            dup2_stderr(&nowhere).context(failed)?;
        }
        Ok(quiet)
    }
}

/// Duplicates a stream that is to be replaced. The command does not inherit the duplicate.
fn kept(stream: impl AsFd + IsTerminal) -> rustix::io::Result<Option<OwnedFd>> {
    let is_terminal = stream.is_terminal();
    is_terminal
        .then(|| rustix::io::fcntl_dupfd_cloexec(stream, 3))
        .transpose()
}

impl Drop for QuietCommand {
    fn drop(&mut self) {
        // Nothing can be done if this fails.
        let _ = self.stdin.take().map(dup2_stdin);
        let _ = self.stdout.take().map(dup2_stdout);
        let _ = self.stderr.take().map(dup2_stderr);
    }
}
