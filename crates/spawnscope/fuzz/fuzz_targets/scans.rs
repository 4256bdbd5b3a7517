//! Fuzzes the log of macOS's scanner, whose format may change.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_import::fuzz_scans;

fuzz_target!(|log: &[u8]| {
    let lines = log.split(|byte| *byte == b'\n').count() as u64;
    let (count, tied) = fuzz_scans(log);
    assert!(tied <= count && count <= lines, "{count} scans in {lines} lines, {tied} tied");
});
