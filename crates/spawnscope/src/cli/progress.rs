//! The spinner with the live count of launches. A command shares the terminal with it, by the standard error that it inherits, and may
//! leave a line unfinished at any moment; so may whoever reads the command's output (`| tee log`). So a recording with a command
//! has no spinner. Without one (`-p`, `-a`) it is shown while no followed process uses the terminal, and gives way for good when one does.

use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::{getpgrp, tcgetpgrp};

/// A recording that ends sooner has no spinner.
const PATIENCE: Duration = Duration::from_secs(1);

/// A spinner on standard error, or nothing.
pub struct Progress {
    spinner: Option<ProgressBar>,
    began: Instant,
}

/// The device of the terminal that a spinner would use; `None`: there is to be no spinner.
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
    /// A spinner if `wanted`; it appears later.
    #[must_use]
    pub fn new(wanted: bool) -> Progress {
        Progress {
            spinner: wanted.then(ProgressBar::hidden),
            began: Instant::now(),
        }
    }

    /// Draws the next frame. `terminal_used` says whether a followed process has used the terminal.
    pub fn tick(&mut self, launches: u64, terminal_used: impl FnOnce() -> bool) {
        let Some(spinner) = &self.spinner else { return };
        if self.began.elapsed() < PATIENCE {
            return;
        }
        if terminal_used() || !is_ours_to_draw_on() {
            // No clearing: the cursor may stand behind somebody's prompt.
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

    /// Takes the spinner away.
    pub fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

/// Whether we are in the terminal's foreground, and it is in the mode that ordinary commands leave it in: a background
/// job has no business there, and an editor or a prompt for a password is not to be drawn over.
fn is_ours_to_draw_on() -> bool {
    let stderr = std::io::stderr();
    let in_foreground = tcgetpgrp(&stderr).is_ok_and(|group| group == getpgrp());
    let echoes_lines = LocalFlags::ICANON | LocalFlags::ECHO;
    in_foreground && tcgetattr(stderr.as_fd()).is_ok_and(|mode| mode.local_flags.contains(echoes_lines))
}
