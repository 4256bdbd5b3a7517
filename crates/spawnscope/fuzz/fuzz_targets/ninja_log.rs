//! Fuzzes the reader of ninja's log, which any process may have written, and the search for the
//! edges of commands.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_recording::fuzz_ninja_log;

/// The commands of the logs in the corpus. The last one is listed twice, so it is ambiguous.
const COMMANDS: [&[u8]; 4] = [b"cc -c a.c", b"cc -c b.c", b"touch x y", b"touch x y"];

fuzz_target!(|log: &[u8]| {
    for (command, outputs) in fuzz_ninja_log(log, &COMMANDS) {
        assert!(command < 2, "the last two are one command, so they have no edge");
        assert!(!outputs.is_empty() && outputs.is_sorted());
    }
});
