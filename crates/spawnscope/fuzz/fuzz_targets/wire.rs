//! Fuzzes the decoder of records from the ring buffer. BPF programs write the records, but paths
//! and names in them come from processes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| spawnscope_collect::fuzzing::decode(bytes));
