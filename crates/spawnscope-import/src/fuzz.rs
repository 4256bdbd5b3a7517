//! The entry for the fuzz target.

use crate::strace::{Log, log_of_text};

/// Reads a log, and returns the number of its events and of the lines that were refused.
pub fn fuzz_strace(text: &[u8]) -> (usize, u64) {
    let Some(mut log) = log_of_text(text) else {
        return (0, 0);
    };
    let events = read_all(&mut log);
    (events, log.refused().map_or(0, |refused| refused.count))
}

fn read_all(log: &mut Log) -> usize {
    let mut count = 0;
    while log.read().unwrap_or(false) {
        count += log.take_events().len();
    }
    log.finish();
    count + log.take_events().len()
}
