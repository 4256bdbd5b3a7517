//! A log of ninja, which any process may have written, and the edges of commands in it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope::record::fuzz_ninja_log;

/// Those of the logs in the corpus; the last one stands there twice.
const COMMANDS: [&[u8]; 4] = [b"cc -c a.c", b"cc -c b.c", b"touch x y", b"touch x y"];

fuzz_target!(|log: &[u8]| {
    for (command, outputs) in fuzz_ninja_log(log, &COMMANDS) {
        assert!(command < 2, "the last two are one command, so they have no edge");
        assert!(!outputs.is_empty() && outputs.is_sorted());
    }
});
