//! Fuzzes the import of strace's logs, which may come from anybody and may be torn.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_import::{Format, fuzz};

fuzz_target!(|log: &[u8]| {
    let lines = log.split(|byte| *byte == b'\n').count();
    let (events, refused) = fuzz(Format::Strace, log);
    assert!(refused <= lines as u64);
    // A line reports at most a few events, and the end of a process closes what it had begun.
    assert!(events <= 16 * lines, "{events} events of {lines} lines");
});
