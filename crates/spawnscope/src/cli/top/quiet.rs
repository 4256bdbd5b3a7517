//! Keeps a command that `top` watches from writing to the terminal that `top` draws on. While the command is started, standard streams that
//! are a terminal are replaced by /dev/null, which the command inherits. Streams that the user redirected are not replaced.

use std::fs::OpenOptions;
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Duplicates of the streams that were replaced. The streams are restored when this is dropped.
pub struct SilencedStreams {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl SilencedStreams {
    /// Replaces the streams if there is a command.
    ///
    /// # Errors
    /// When a stream cannot be replaced.
    pub fn silence(has_command: bool) -> Result<SilencedStreams> {
        let mut streams = SilencedStreams { stdin: None, stdout: None, stderr: None };
        if !has_command {
            return Ok(streams);
        }
        let failure = "failed to keep the command's output off the screen";
        let dev_null = OpenOptions::new().read(true).write(true).open("/dev/null").context(failure)?;
        streams.stdin = duplicate_if_terminal(stdin()).context(failure)?;
        streams.stdout = duplicate_if_terminal(stdout()).context(failure)?;
        streams.stderr = duplicate_if_terminal(stderr()).context(failure)?;
        if streams.stdin.is_some() {
            dup2_stdin(&dev_null).context(failure)?;
        }
        if streams.stdout.is_some() {
            dup2_stdout(&dev_null).context(failure)?;
        }
        if streams.stderr.is_some() {
            dup2_stderr(&dev_null).context(failure)?;
        }
        Ok(streams)
    }
}

/// Duplicates a stream if it is a terminal. The command does not inherit the duplicate.
fn duplicate_if_terminal(stream: impl AsFd + IsTerminal) -> rustix::io::Result<Option<OwnedFd>> {
    let is_terminal = stream.is_terminal();
    is_terminal.then(|| rustix::io::fcntl_dupfd_cloexec(stream, 3)).transpose()
}

impl Drop for SilencedStreams {
    fn drop(&mut self) {
        // Nothing can be done if this fails.
        let _ = self.stdin.take().map(dup2_stdin);
        let _ = self.stdout.take().map(dup2_stdout);
        let _ = self.stderr.take().map(dup2_stderr);
    }
}
