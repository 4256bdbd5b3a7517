//! A pseudo-terminal with a shell in it. It answers the questions that shells ask their terminal,
//! because some wait for the answers.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::time::Instant;

use nix::pty::{Winsize, openpty};
use spawnscope_data::event::Pid;
use spawnscope_system::process::is_readable_within;
use spawnscope_system::procfs::Status;

const SIZE: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
/// What shells ask, and the answers: the position of the cursor, the kind of terminal, and its
/// status.
const ANSWERS: [(&[u8], &[u8]); 4] =
    [(b"\x1b[6n", b"\x1b[1;1R"), (b"\x1b[c", b"\x1b[?62c"), (b"\x1b[0c", b"\x1b[?62c"), (b"\x1b[5n", b"\x1b[0n")];

pub(super) struct Terminal {
    shell: Child,
    master: File,
    /// The device number of the end that the shell has.
    device: u64,
}

impl Terminal {
    /// Starts a shell in a session of its own, whose terminal this is.
    pub(super) fn start(words: &[OsString]) -> io::Result<Terminal> {
        let pair = openpty(Some(&SIZE), None)?;
        let (master, slave) = (File::from(pair.master), File::from(pair.slave));
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
        rustix::io::fcntl_setfd(&slave, rustix::io::FdFlags::CLOEXEC)?;
        let device = slave.metadata()?.rdev();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
        if std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb") {
            command.env("TERM", "xterm-256color");
        }
        // SAFETY: the new process only makes system calls. Standard input is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
            });
        }
        Ok(Terminal { shell: command.spawn()?, master, device })
    }

    pub(super) fn shell(&self) -> Pid {
        Pid(self.shell.id().cast_signed())
    }

    /// Whether a descriptor of the shell is this terminal.
    pub(super) fn is_open_as(&self, descriptor: u64) -> bool {
        let found = std::fs::metadata(format!("/proc/{}/fd/{descriptor}", self.shell.id()));
        found.is_ok_and(|found| found.rdev() == self.device || found.rdev() == libc::makedev(5, 0))
    }

    /// Whether the shell itself may read from the terminal, and not a program that it has started.
    pub(super) fn shell_is_foreground(&self) -> bool {
        rustix::termios::tcgetpgrp(&self.master).is_ok_and(|group| group.as_raw_pid() == self.shell().0)
    }

    pub(super) fn press_enter(&mut self) -> io::Result<()> {
        self.master.write_all(b"\r")
    }

    /// Reads what the shell prints, until it prints nothing and this time has come. Returns `false`
    /// if the shell has ended.
    pub(super) fn read_until(&mut self, until: Instant, has_output: &mut bool) -> io::Result<bool> {
        let mut buffer = [0; 8192];
        while is_readable_within(self.master.as_fd(), until.saturating_duration_since(Instant::now())) {
            match self.master.read(&mut buffer) {
                Ok(count) if count > 0 => {
                    *has_output = true;
                    self.answer(&buffer[..count])?;
                }
                // The last process with the terminal has closed it.
                _ => return Ok(false),
            }
            if Instant::now() >= until {
                break;
            }
        }
        // Processes in the background may still have the terminal.
        Ok(Status::read(self.shell()).is_some_and(|status| !status.has_ended()))
    }

    fn answer(&mut self, output: &[u8]) -> io::Result<()> {
        for (question, answer) in ANSWERS {
            for _ in output.windows(question.len()).filter(|window| *window == question) {
                self.master.write_all(answer)?;
            }
        }
        Ok(())
    }

    pub(super) fn reap(&mut self) -> io::Result<i32> {
        Ok(self.shell.wait()?.into_raw())
    }
}

impl Drop for Terminal {
    /// Kills the shell, which would write its history if it ended by itself. The kernel then hangs
    /// up its other processes.
    fn drop(&mut self) {
        // Errors mean that it has ended.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
