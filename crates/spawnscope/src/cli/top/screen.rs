//! Switches the terminal to raw mode and the alternate screen while `top` draws on it, and back.
//! The terminal is opened as /dev/tty, because standard output may be redirected for the command.
//! `SilencedStreams` keeps the command from using the terminal.

use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::{Frame, Terminal};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::cli::output;
use crate::present::text;

const TERMINAL: &str = "/dev/tty";

pub fn has_terminal() -> bool {
    open().is_ok()
}

fn open() -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).open(TERMINAL)
}

/// Replaces glyphs that the terminal or the locale cannot show.
fn replace_glyphs(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let ascii = text::to_ascii(cell.symbol());
        cell.set_symbol(&ascii);
    }
}

/// The terminal. It is restored when this is dropped.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<File>>,
    has_colour: bool,
    has_glyphs: bool,
}

impl Screen {
    pub fn open() -> Result<Screen> {
        let mut file = open().context("failed to open the terminal")?;
        enable_raw_mode().context("failed to change the mode of the terminal")?;
        let entered = execute!(file, EnterAlternateScreen).and_then(|()| Terminal::new(CrosstermBackend::new(file)));
        let terminal = entered.inspect_err(|_| drop(disable_raw_mode()));
        Ok(Screen {
            terminal: terminal.context("failed to draw on the terminal")?,
            // https://no-color.org: set and not empty.
            has_colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
            has_glyphs: output::has_glyphs(),
        })
    }

    pub fn has_colour(&self) -> bool {
        self.has_colour
    }

    pub fn draw<T: Default>(&mut self, draw: impl FnOnce(&mut Frame<'_>) -> T) -> Result<T> {
        let mut result = T::default();
        let has_glyphs = self.has_glyphs;
        let drawn = self.terminal.draw(|frame| {
            result = draw(frame);
            if !has_glyphs {
                replace_glyphs(frame.buffer_mut());
            }
        });
        drawn.context("failed to draw on the terminal")?;
        Ok(result)
    }

    /// Waits for a key. Returns `None` early if the terminal is resized.
    pub fn next_key(&mut self, timeout: Duration) -> Result<Option<KeyEvent>> {
        let failure = "failed to read keys from the terminal";
        if !event::poll(timeout).context(failure)? {
            return Ok(None);
        }
        match event::read().context(failure)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => Ok(Some(key)),
            _ => Ok(None),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done if the terminal is gone.
        let _ = execute!(self.terminal.backend_mut(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Duplicates of the streams that were replaced. The streams are restored when this is dropped.
pub struct SilencedStreams {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl SilencedStreams {
    /// If there is a command, replaces the streams that are terminals by /dev/null.
    pub fn silence(has_command: bool) -> Result<SilencedStreams> {
        let mut streams = SilencedStreams { stdin: None, stdout: None, stderr: None };
        if !has_command {
            return Ok(streams);
        }
        let failure = "failed to keep the command's output off the screen";
        let dev_null = OpenOptions::new().read(true).write(true).open("/dev/null").context(failure)?;
        streams.stdin = replace_if_terminal(stdin(), || dup2_stdin(&dev_null)).context(failure)?;
        streams.stdout = replace_if_terminal(stdout(), || dup2_stdout(&dev_null)).context(failure)?;
        streams.stderr = replace_if_terminal(stderr(), || dup2_stderr(&dev_null)).context(failure)?;
        Ok(streams)
    }
}

/// Replaces a stream if it is a terminal. Returns a duplicate, which the command does not inherit.
fn replace_if_terminal(
    stream: impl AsFd + IsTerminal,
    replace: impl FnOnce() -> rustix::io::Result<()>,
) -> rustix::io::Result<Option<OwnedFd>> {
    let is_terminal = stream.is_terminal();
    let duplicate = is_terminal.then(|| rustix::io::fcntl_dupfd_cloexec(stream, 3)).transpose()?;
    duplicate.map(|duplicate| replace().map(|()| duplicate)).transpose()
}

impl Drop for SilencedStreams {
    fn drop(&mut self) {
        // Nothing can be done if this fails.
        let _ = self.stdin.take().map(dup2_stdin);
        let _ = self.stdout.take().map(dup2_stdout);
        let _ = self.stderr.take().map(dup2_stderr);
    }
}
