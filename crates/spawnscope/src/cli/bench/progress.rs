//! The progress line on a terminal. If standard error is not a terminal, or cannot redraw a line,
//! nothing is printed.

use std::env;
use std::ffi::OsStr;

use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt;
use crate::lab::context::Watch;

/// The parts that are never cut come first; the message takes the rest of the line.
const TEMPLATE: &str = "{prefix} [{bar:10}] {elapsed} {wide_msg}";
const HOW_TO_END: &str = "Ctrl-C stops and keeps results";

pub struct Progress {
    bar: ProgressBar,
    count: usize,
}

impl Progress {
    pub fn new(count: usize) -> Progress {
        let is_dumb = env::var_os("TERM").is_none_or(|name| name.is_empty() || name == OsStr::new("dumb"));
        let bar = if is_dumb { ProgressBar::hidden() } else { ProgressBar::new(100) };
        let style = ProgressStyle::with_template(TEMPLATE);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress { bar, count }
    }

    /// Starts an experiment after `done` others.
    pub fn begin(&self, experiment: &str, done: usize) {
        self.bar.set_prefix(format!("{}/{} {experiment}", done + 1, self.count));
        self.bar.set_position(0);
        self.bar.set_message(HOW_TO_END);
        self.bar.tick();
    }

    /// Runs `act` while the line is hidden.
    pub fn suspend<T>(&self, act: impl FnOnce() -> T) -> T {
        self.bar.suspend(act)
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Progress {
    fn report_progress(&self, doing: &str, share: f64) -> bool {
        self.bar.set_message(if doing.is_empty() { HOW_TO_END.to_owned() } else { doing.to_owned() });
        self.bar.set_position((100.0 * share) as u64);
        interrupt::status().is_none()
    }
}
