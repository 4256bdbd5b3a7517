//! Asks for Enter on the controlling terminal, never on standard input, which is the command's. The terminal's settings stay as
//! they are, so that there are none to put back; it is read byte by byte, so that what follows Enter is left to the command.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::unistd::{getpgrp, tcgetpgrp};

/// The terminal that is read from.
#[derive(Debug)]
pub struct Prompt {
    terminal: File,
}

impl Prompt {
    /// `None`: there is no controlling terminal, or it belongs to another group of processes now, and who reads from it
    /// nevertheless is stopped.
    pub fn open() -> Option<Prompt> {
        let terminal = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOCTTY | libc::O_NONBLOCK)
            .open("/dev/tty")
            .ok()?;
        let prompt = Prompt { terminal };
        prompt.is_ours().then_some(prompt)
    }

    /// Readable when something was typed; `None` while the terminal is another group's.
    pub fn readiness(&self) -> Option<BorrowedFd<'_>> {
        self.is_ours().then(|| self.terminal.as_fd())
    }

    /// Whether Enter was pressed, or the terminal is gone and nobody can press it.
    pub fn is_answered(&mut self) -> bool {
        let mut byte = [0];
        while self.is_ours() {
            match self.terminal.read(&mut byte) {
                // A program may have switched the terminal's translation of the key off.
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
        // A terminal that hung up is nobody's: to read from it says so.
        tcgetpgrp(&self.terminal).map_or(true, |foreground| foreground == getpgrp())
    }
}
