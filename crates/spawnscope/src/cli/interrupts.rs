//! Counts Ctrl-C presses while a command runs. Ctrl-C is for the command, which may be an editor, a pager or a shell, where it is
//! pressed often. Only three presses within a second are for the recorder: it then stops recording and exits.

use std::time::{Duration, Instant};

/// Number of presses that make the recorder exit.
const PRESSES_TO_EXIT: usize = 3;
/// Maximum time from the first to the last of these presses.
const MAX_TIME: Duration = Duration::from_secs(1);
/// Interrupts closer together than this are one Ctrl-C that reached us twice, for example through `timeout`.
const MIN_PRESS_INTERVAL: Duration = Duration::from_millis(50);

/// The most recent presses.
#[derive(Debug, Default)]
pub struct Interrupts {
    presses: Vec<Instant>,
}

impl Interrupts {
    /// Counts an interrupt. Returns whether the recorder must exit.
    pub fn press(&mut self, now: Instant) -> bool {
        if self.presses.last().is_some_and(|&last| now.duration_since(last) < MIN_PRESS_INTERVAL) {
            return false;
        }
        self.presses.retain(|&press| now.duration_since(press) <= MAX_TIME);
        self.presses.push(now);
        self.presses.len() >= PRESSES_TO_EXIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns, for each press at these times (in milliseconds), whether it makes the recorder exit.
    fn pressed(at: &[u64]) -> Vec<bool> {
        let start = Instant::now();
        let mut interrupts = Interrupts::default();
        let at = at.iter().map(|&at| start + Duration::from_millis(at));
        at.map(|at| interrupts.press(at)).collect()
    }

    #[test]
    fn three_presses_within_a_second_make_the_recorder_exit() {
        assert_eq!(pressed(&[0, 300, 600]), [false, false, true]);
    }

    #[test]
    fn slow_presses_are_ignored_however_many_there_are() {
        assert_eq!(pressed(&[0, 600, 1200, 1800, 60_000]), [false; 5]);
    }

    #[test]
    fn one_press_that_arrives_twice_counts_once() {
        assert_eq!(pressed(&[0, 10, 300, 310, 600]), [false, false, false, false, true]);
    }
}
