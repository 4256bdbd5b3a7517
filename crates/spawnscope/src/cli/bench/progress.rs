//! The progress line on a terminal. If standard error is not a terminal, nothing is printed.

use std::cell::{Cell, RefCell};
use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

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
    started: Instant,
    /// The expected time of each experiment, estimated before the first.
    guesses: Vec<Duration>,
    /// The expected total time, formatted.
    total: RefCell<String>,
    /// Whether to print one line per experiment, since the terminal cannot redraw a line.
    is_plain: bool,
    /// Columns that the message cannot use.
    occupied_columns: Cell<usize>,
}

impl Progress {
    /// Creates the line if standard error is a terminal. `guesses` are the expected times of the experiments.
    pub fn new(guesses: Vec<Duration>) -> Progress {
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
        Progress {
            bar,
            started: Instant::now(),
            guesses,
            total: RefCell::new(String::new()),
            is_plain,
            occupied_columns: Cell::new(0),
        }
    }

    /// Starts an experiment after `done` others.
    pub fn begin(&self, experiment: &str, done: usize) {
        self.total.replace(rough_time(estimate_total(&self.guesses, self.started.elapsed(), done)));
        let prefix = format!("{}/{} {experiment}", done + 1, self.guesses.len());
        if self.is_plain {
            let total = self.total.borrow();
            output::print_message(&format!("{prefix}; about {total} in all; {HOW_TO_END}"));
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
        self.bar.set_message(longest_fitting(&self.total.borrow(), doing, left));
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

/// Returns the longest form of the message that fits, without cut words.
fn longest_fitting(total: &str, doing: &str, columns: usize) -> String {
    let forms = [format!("of about {total}; {doing}"), format!("of about {total}"), format!("of {total}")];
    let found = forms.into_iter().find(|form| form.chars().count() <= columns);
    found.unwrap_or_default()
}

/// Estimates the total time after `done` experiments. The ratio of their elapsed time to their guesses scales the remaining guesses. To
/// damp this ratio, one more experiment of mean length is assumed to have taken exactly as long as guessed.
fn estimate_total(guesses: &[Duration], elapsed: Duration, done: usize) -> Duration {
    let (before, after) = guesses.split_at(done.min(guesses.len()));
    let [before, after] = [before, after].map(|part| part.iter().sum::<Duration>().as_secs_f64());
    let mean = (before + after) / guesses.len().max(1) as f64;
    let factor = if mean > 0.0 { (elapsed.as_secs_f64() + mean) / (before + mean) } else { 1.0 };
    elapsed + Duration::from_secs_f64(after * factor)
}

/// Formats a rough time: `4s`, `20s`, `5m`.
fn rough_time(time: Duration) -> String {
    match time.as_secs_f64().ceil() as u64 {
        seconds @ 0..=9 => format!("{seconds}s"),
        seconds @ 10..=90 => format!("{}s", seconds.div_ceil(10) * 10),
        seconds => format!("{}m", (seconds as f64 / 60.0).round()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_time_is_estimated_from_finished_experiments() {
        let seconds = Duration::from_secs;
        let alike = [seconds(18); 14];
        assert_eq!(estimate_total(&alike, Duration::ZERO, 0), seconds(14 * 18));
        assert_eq!(estimate_total(&alike, seconds(30), 1), seconds(30 + 13 * 24));
        let unlike = [10, 30, 5].map(seconds);
        assert_eq!(estimate_total(&unlike, Duration::ZERO, 0), seconds(45));
        // Twice as slow as expected. The mean guess of 15 s counts as well.
        assert_eq!(estimate_total(&unlike, seconds(35), 1), seconds(35 + 2 * 35));
        assert_eq!(estimate_total(&[], seconds(1), 0), seconds(1));
    }

    #[test]
    fn parts_of_the_message_that_do_not_fit_are_omitted() {
        let messages = [48, 43, 13, 12, 5, 4].map(|columns| longest_fitting("5m", HOW_TO_END, columns));
        let whole = "of about 5m; Ctrl-C stops and keeps results";
        assert_eq!(whole.len(), 43);
        assert_eq!(messages, [whole, whole, "of about 5m", "of about 5m", "of 5m", ""]);
    }

    #[test]
    fn a_terminal_without_a_type_is_assumed_to_be_dumb() {
        let dumb = [Some("dumb"), Some(""), None, Some("xterm-256color"), Some("linux")];
        let found = dumb.map(|kind| is_dumb(kind.map(OsStr::new)));
        assert_eq!(found, [true, true, true, false, false]);
    }

    #[test]
    fn rough_times_are_rounded() {
        let millis = [100, 900, 3100, 9500, 31_000, 90_000, 91_000, 149_000, 3_600_000];
        let texts = millis.map(|millis| rough_time(Duration::from_millis(millis)));
        assert_eq!(texts, ["1s", "1s", "4s", "10s", "40s", "90s", "2m", "2m", "60m"]);
    }
}
