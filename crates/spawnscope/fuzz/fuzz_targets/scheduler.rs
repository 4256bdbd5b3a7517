//! Fuzzes the import of the scheduler's events, as perf, trace-cmd and ftrace write them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_import::{Format, fuzz};

fuzz_target!(|log: &[u8]| {
    let lines = log.split(|byte| *byte == b'\n').count();
    let (events, refused) = fuzz(Format::Perf, log);
    assert!(refused <= lines as u64);
    assert!(events <= 16 * lines, "{events} events of {lines} lines");
});
