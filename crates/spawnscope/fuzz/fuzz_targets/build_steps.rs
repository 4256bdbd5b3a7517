//! Fuzzes the logs of build tools.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_import::fuzz_steps;

fuzz_target!(|log: &[u8]| {
    let steps = fuzz_steps(log);
    assert!(steps <= log.len(), "{steps} steps in {} bytes", log.len());
});
