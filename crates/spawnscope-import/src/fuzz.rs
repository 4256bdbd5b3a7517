//! The entries for the fuzz targets.

use spawnscope_data::event::Nanos;

use crate::input::{Format, Lines};
use crate::scans::Scans;
use crate::{Source, eslogger, sched, steps, strace};

/// Reads a log of a format, and returns the number of its events and of the lines that were
/// refused.
pub fn fuzz(format: Format, text: &[u8]) -> (usize, u64) {
    let lines = Lines::of_text(text);
    let log: Result<Box<dyn Source>, _> = match format {
        Format::Strace => strace::Log::of_one(lines).map(|log| Box::new(log) as _),
        Format::Perf => sched::Log::of_one(lines).map(|log| Box::new(log) as _),
        Format::Eslogger => eslogger::Log::of_one(lines, None).map(|log| Box::new(log) as _),
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

/// Reads a log of scans, and returns their number and how many belong to one of several launches of
/// two files.
pub fn fuzz_scans(text: &[u8]) -> (u64, u64) {
    let Ok(mut scans) = Scans::of_lines(Lines::of_text(text)) else {
        return (0, 0);
    };
    for at in [0, 1_795_857_310_000_000_000, u64::MAX] {
        for path in [&b"/A.app/Contents/MacOS/A"[..], b"/Users/me/x/target/debug/deps/parser-0000000000000000"] {
            let scan = scans.take(path, Nanos(at), Nanos(at));
            assert!(scan.is_none_or(|scan| scan.from <= scan.to));
        }
    }
    (scans.count, scans.tied)
}

/// Reads a log of a build tool, and returns the number of its steps.
pub fn fuzz_steps(text: &[u8]) -> usize {
    steps::parse(text).iter().map(Vec::len).sum()
}
