//! The progress line on a terminal. If standard error is not a terminal, nothing is printed.

use std::cell::Cell;
use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::interrupt;
use crate::cli::output;
use crate::lab::context::Watch;

/// The parts that are never cut come first; the message takes the rest of the line.
const TEMPLATE: &str = "{prefix} [{bar:10}] {elapsed} {wide_msg}";
/// Columns of everything but prefix and message: the bar, spaces, and a time of three digits with its unit.
const FIXED_COLUMNS: usize = " [          ] 100s ".len();
const HOW_TO_END: &str = "Ctrl-C stops and keeps results";
/// Columns to assume for a terminal that does not report them, such as a serial line.
const DEFAULT_WIDTH: usize = 80;
/// Columns that stay free at the end of the line, for the `^C` that the terminal echoes.
const ECHO_COLUMNS: u16 = "^C".len() as u16 + 1;

/// The progress line.
pub struct Progress {
    bar: ProgressBar,
    /// The number of experiments.
    count: usize,
    /// Whether to print one line per experiment, since the terminal cannot redraw a line.
    is_plain: bool,
    /// Columns that the message cannot use.
    occupied_columns: Cell<usize>,
}

impl Progress {
    /// Creates the line for `count` experiments if standard error is a terminal.
    pub fn new(count: usize) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let is_plain = is_terminal && is_dumb(env::var_os("TERM").as_deref());
        let bar = if is_terminal && !is_plain {
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(NarrowedTerminal), 10);
            ProgressBar::with_draw_target(Some(100), target)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template(TEMPLATE);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, count, is_plain, occupied_columns: Cell::new(0) }
    }

    /// Starts an experiment after `done` others.
    pub fn begin(&self, experiment: &str, done: usize) {
        let prefix = format!("{}/{} {experiment}", done + 1, self.count);
        if self.is_plain {
            output::print_message(&format!("{prefix}; {HOW_TO_END}"));
        }
        self.occupied_columns.set(FIXED_COLUMNS + prefix.chars().count());
        self.bar.set_prefix(prefix);
        self.bar.set_position(0);
        self.show_status("");
        self.bar.tick();
    }

    /// Runs `act` while the line is hidden.
    pub fn suspend<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn show_status(&self, doing: &str) {
        let doing = if doing.is_empty() { HOW_TO_END } else { doing };
        let left = usize::from(NarrowedTerminal.width()).saturating_sub(self.occupied_columns.get());
        // A message that does not fit is omitted, so that no word is cut.
        self.bar.set_message(if doing.chars().count() <= left { doing.to_owned() } else { String::new() });
    }
}

impl Watch for Progress {
    fn report_progress(&self, doing: &str, share: f64) -> bool {
        self.show_status(doing);
        self.bar.set_position((100.0 * share) as u64);
        interrupt::status().is_none()
    }
}

/// Standard error's terminal with fewer columns. indicatif fills the line to its end, so an echoed `^C` would wrap, and the old line
/// would stay on the screen.
#[derive(Debug)]
struct NarrowedTerminal;

impl NarrowedTerminal {
    fn move_by(&self, count: usize, direction: char) -> io::Result<()> {
        match count {
            0 => Ok(()),
            _ => self.write_str(&format!("\x1b[{count}{direction}")),
        }
    }
}

impl TermLike for NarrowedTerminal {
    fn width(&self) -> u16 {
        let width = output::terminal_width(&io::stderr()).unwrap_or(DEFAULT_WIDTH);
        u16::try_from(width).unwrap_or(u16::MAX).saturating_sub(ECHO_COLUMNS)
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        self.move_by(count, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.write_str(&format!("{line}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.write_str("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Whether a terminal of this type (TERM) cannot move its cursor. Without a type, this is assumed.
fn is_dumb(terminal_type: Option<&OsStr>) -> bool {
    terminal_type.is_none_or(|name| name.is_empty() || name == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_without_a_type_is_assumed_to_be_dumb() {
        let dumb = [Some("dumb"), Some(""), None, Some("xterm-256color"), Some("linux")];
        let found = dumb.map(|kind| is_dumb(kind.map(OsStr::new)));
        assert_eq!(found, [true, true, true, false, false]);
    }
}
