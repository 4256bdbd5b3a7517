//! Waits for Enter on the controlling terminal, not on standard input, which belongs to the
//! command. The terminal's settings are not changed, so they need not be restored. Input is read
//! byte by byte, so that everything after Enter is left for the command.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::unistd::{getpgrp, tcgetpgrp};

#[derive(Debug)]
pub struct Prompt {
    terminal: File,
}

impl Prompt {
    /// Opens the controlling terminal. `None` if there is none, or if another process group is in
    /// the foreground, because reading from the terminal would then stop this process.
    pub fn open() -> Option<Prompt> {
        let terminal =
            OpenOptions::new().read(true).custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK).open("/dev/tty").ok()?;
        let prompt = Prompt { terminal };
        prompt.is_ours().then_some(prompt)
    }

    /// Returns a descriptor that becomes readable on input; `None` while another process group is
    /// in the foreground.
    pub fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.is_ours().then(|| self.terminal.as_fd())
    }

    pub fn is_answered(&mut self) -> bool {
        let mut byte = [0];
        while self.is_ours() {
            match self.terminal.read(&mut byte) {
                // A program may have disabled the terminal's translation of CR to NL.
                Ok(1) if matches!(byte[0], b'\n' | b'\r') => return true,
                Ok(1) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                    return false;
                }
                Ok(_) | Err(_) => return true,
            }
        }
        false
    }

    fn is_ours(&self) -> bool {
        // After a hangup the call fails. `true` lets the next read report the end of the terminal.
        tcgetpgrp(&self.terminal).map_or(true, |foreground| foreground == getpgrp())
    }
}
