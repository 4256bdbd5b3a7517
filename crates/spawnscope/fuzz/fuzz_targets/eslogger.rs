//! Fuzzes the import of the logs of macOS's eslogger, whose format may change.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_import::{Format, fuzz};

fuzz_target!(|log: &[u8]| {
    let lines = log.split(|byte| *byte == b'\n').count();
    let (events, refused) = fuzz(Format::Eslogger, log);
    assert!(refused <= lines as u64);
    assert!(events <= 16 * lines, "{events} events of {lines} lines");
});
