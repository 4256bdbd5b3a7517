//! A spinner with the live count of launches. A recording with a command has no spinner, because the command inherits standard error and
//! may leave an unfinished line on the terminal at any moment; so may a reader of the command's output (`| tee log`). Without a command
//! (`-p`, `-a`), the spinner is shown as long as no followed process uses the terminal. Once one
//! does, the spinner stays hidden.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

/// Recordings shorter than this show no spinner.
const SPINNER_DELAY: Duration = Duration::from_secs(1);

/// A spinner on standard error, or nothing.
pub struct Progress {
    spinner: Option<ProgressBar>,
    started: Instant,
}

/// Returns the device number of the terminal that the spinner would use, or `None` if there must not be a spinner.
#[must_use]
pub fn terminal(quiet: bool, has_command: bool) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    if quiet || has_command || !std::io::stderr().is_terminal() {
        return None;
    }
    let device = std::fs::metadata("/proc/self/fd/2").ok()?;
    device.file_type().is_char_device().then(|| device.rdev())
}

impl Progress {
    /// Creates the spinner if `wanted`. It appears after `SPINNER_DELAY`.
    #[must_use]
    pub fn new(wanted: bool) -> Progress {
        Progress { spinner: wanted.then(ProgressBar::hidden), started: Instant::now() }
    }

    /// Draws the next frame. `terminal_used` returns whether a followed process has used the terminal.
    pub fn tick(&mut self, launches: u64, terminal_used: impl FnOnce() -> bool) {
        let Some(spinner) = &self.spinner else { return };
        if self.started.elapsed() < SPINNER_DELAY {
            return;
        }
        if terminal_used() || !may_draw_on_terminal() {
            // Do not clear the line: the cursor may be behind another program's prompt.
            spinner.set_draw_target(ProgressDrawTarget::hidden());
            self.spinner = None;
            return;
        }
        if spinner.is_hidden() {
            spinner.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{spinner} recording: {msg} launches, {elapsed}");
            spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        }
        spinner.set_message(launches.to_string());
        spinner.tick();
    }

    /// Removes the spinner from the terminal.
    pub fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

/// Whether this process is in the terminal's foreground and the terminal is in the mode that ordinary commands use. A background job must
/// not draw, and the spinner must not overwrite an editor or a password prompt.
fn may_draw_on_terminal() -> bool {
    let stderr = std::io::stderr();
    let in_foreground = tcgetpgrp(&stderr).is_ok_and(|group| group == getpgrp());
    let echoes_lines = LocalFlags::ICANON | LocalFlags::ECHO;
    in_foreground && tcgetattr(stderr.as_fd()).is_ok_and(|mode| mode.local_flags.contains(echoes_lines))
}
