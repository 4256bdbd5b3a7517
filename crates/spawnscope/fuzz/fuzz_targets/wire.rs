//! A record of the ring buffer. The kernel writes these, but paths and names in them are a process's.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| spawnscope::collect::fuzzing::decode(bytes));
