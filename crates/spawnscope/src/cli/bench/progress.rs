//! The progress line on a terminal. Elsewhere, nothing is printed.

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
/// Columns besides prefix and message: the bar, spaces, and a time of three digits with its unit.
const BESIDE: usize = " [          ] 100s ".len();
const HOW_TO_END: &str = "Ctrl-C stops and keeps results";
/// Columns of a terminal that does not report them, such as a serial line.
const DEFAULT_WIDTH: usize = 80;
/// Columns at the end of the line that stay free for characters that the terminal echoes.
const ECHO: u16 = "^C".len() as u16 + 1;

/// The progress line.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    /// The expected time of each experiment, estimated before the first.
    guesses: Vec<Duration>,
    /// The expected total time, formatted.
    whole: RefCell<String>,
    /// A terminal that cannot redraw a line gets one line per experiment.
    is_plain: bool,
    /// Columns that the message cannot use.
    taken: Cell<usize>,
}

impl Progress {
    /// Creates the line if standard error is a terminal. `guesses` are the expected times of the experiments.
    pub fn new(guesses: Vec<Duration>) -> Progress {
        let is_terminal = io::stderr().is_terminal();
        let is_plain = is_terminal && is_dumb(env::var_os("TERM").as_deref());
        let bar = if is_terminal && !is_plain {
            let target = ProgressDrawTarget::term_like_with_hz(Box::new(Narrower), 10);
            ProgressBar::with_draw_target(Some(100), target)
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template(TEMPLATE);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress {
            bar,
            began: Instant::now(),
            guesses,
            whole: RefCell::new(String::new()),
            is_plain,
            taken: Cell::new(0),
        }
    }

    /// Starts an experiment after `done` others.
    pub fn begin(&self, experiment: &str, done: usize) {
        self.whole
            .replace(about(whole(&self.guesses, self.began.elapsed(), done)));
        let prefix = format!("{}/{} {experiment}", done + 1, self.guesses.len());
        if self.is_plain {
            let whole = self.whole.borrow();
            output::print_message(&format!("{prefix}; about {whole} in all; {HOW_TO_END}"));
        }
        self.taken.set(BESIDE + prefix.chars().count());
        self.bar.set_prefix(prefix);
        self.bar.set_position(0);
        self.say("");
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

    fn say(&self, doing: &str) {
        let doing = if doing.is_empty() { HOW_TO_END } else { doing };
        let left = usize::from(Narrower.width()).saturating_sub(self.taken.get());
        self.bar.set_message(fitting(&self.whole.borrow(), doing, left));
    }
}

impl Watch for Progress {
    fn may_continue(&self, doing: &str, share: f64) -> bool {
        self.say(doing);
        self.bar.set_position((100.0 * share) as u64);
        interrupt::status().is_none()
    }
}

/// Standard error's terminal with fewer columns. The bar fills its line to the end, so an echoed `^C` would wrap and leave the line with
/// the bar behind.
#[derive(Debug)]
struct Narrower;

impl Narrower {
    fn move_by(&self, count: usize, direction: char) -> io::Result<()> {
        match count {
            0 => Ok(()),
            _ => self.write_str(&format!("\x1b[{count}{direction}")),
        }
    }
}

impl TermLike for Narrower {
    fn width(&self) -> u16 {
        let width = output::terminal_width(&io::stderr()).unwrap_or(DEFAULT_WIDTH);
        u16::try_from(width).unwrap_or(u16::MAX).saturating_sub(ECHO)
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

/// Whether a terminal of this kind can only print. A terminal without a kind is assumed to be one.
fn is_dumb(kind: Option<&OsStr>) -> bool {
    kind.is_none_or(|kind| kind.is_empty() || kind == "dumb")
}

/// Returns the longest form of the message that fits, without cut words.
fn fitting(whole: &str, doing: &str, columns: usize) -> String {
    let forms = [
        format!("of about {whole}; {doing}"),
        format!("of about {whole}"),
        format!("of {whole}"),
    ];
    let found = forms.into_iter().find(|form| form.chars().count() <= columns);
    found.unwrap_or_default()
}

/// Estimates the total time when `done` experiments are complete. The ratio of their elapsed time to their guesses scales the remaining
/// guesses; one more experiment of mean length that took exactly as guessed damps the ratio.
fn whole(guesses: &[Duration], elapsed: Duration, done: usize) -> Duration {
    let (before, after) = guesses.split_at(done.min(guesses.len()));
    let [before, after] = [before, after].map(|part| part.iter().sum::<Duration>().as_secs_f64());
    let one = (before + after) / guesses.len().max(1) as f64;
    let factor = if one > 0.0 {
        (elapsed.as_secs_f64() + one) / (before + one)
    } else {
        1.0
    };
    elapsed + Duration::from_secs_f64(after * factor)
}

/// Formats a rough time: `4s`, `20s`, `5m`.
fn about(time: Duration) -> String {
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
    fn remaining_time_is_estimated_from_finished_rounds() {
        let seconds = Duration::from_secs;
        let alike = [seconds(18); 14];
        assert_eq!(whole(&alike, Duration::ZERO, 0), seconds(14 * 18));
        assert_eq!(whole(&alike, seconds(30), 1), seconds(30 + 13 * 24));
        let unlike = [10, 30, 5].map(seconds);
        assert_eq!(whole(&unlike, Duration::ZERO, 0), seconds(45));
        // Twice as slow as expected. The mean guess of 15 s counts as well.
        assert_eq!(whole(&unlike, seconds(35), 1), seconds(35 + 2 * 35));
        assert_eq!(whole(&[], seconds(1), 0), seconds(1));
    }

    #[test]
    fn a_message_is_left_out_rather_than_cut() {
        let said = [48, 43, 13, 12, 5, 4].map(|columns| fitting("5m", HOW_TO_END, columns));
        let whole = "of about 5m; Ctrl-C stops and keeps results";
        assert_eq!(whole.len(), 43);
        assert_eq!(said, [whole, whole, "of about 5m", "of about 5m", "of 5m", ""]);
    }

    #[test]
    fn a_terminal_that_says_nothing_of_itself_is_only_printed_to() {
        let dumb = [Some("dumb"), Some(""), None, Some("xterm-256color"), Some("linux")];
        let found = dumb.map(|kind| is_dumb(kind.map(OsStr::new)));
        assert_eq!(found, [true, true, true, false, false]);
    }

    #[test]
    fn a_guess_has_no_more_digits_than_it_knows() {
        let said = [100, 900, 3100, 9500, 31_000, 90_000, 91_000, 149_000, 3_600_000];
        let said = said.map(|millis| about(Duration::from_millis(millis)));
        assert_eq!(said, ["1s", "1s", "4s", "10s", "40s", "90s", "2m", "2m", "60m"]);
    }
}
