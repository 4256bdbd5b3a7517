//! The entry for the fuzz targets.

use crate::input::{Format, Lines};
use crate::{Source, eslogger, sched, strace};

/// Reads a log of a format, and returns the number of its events and of the lines that were
/// refused.
pub fn fuzz(format: Format, text: &[u8]) -> (usize, u64) {
    let lines = Lines::of_text(text);
    let log: Result<Box<dyn Source>, _> = match format {
        Format::Strace => strace::Log::of_one(lines).map(|log| Box::new(log) as _),
        Format::Perf => sched::Log::of_one(lines).map(|log| Box::new(log) as _),
        Format::Eslogger => eslogger::Log::of_one(lines).map(|log| Box::new(log) as _),
    };
    let Ok(mut log) = log else {
        return (0, 0);
    };
    let mut events = 0;
    while log.read().unwrap_or(false) {
        events += log.take_events().len();
    }
    log.finish();
    let refused = log.count().refused.as_ref().map_or(0, |refused| refused.count);
    (events + log.take_events().len(), refused)
}
