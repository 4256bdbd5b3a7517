//! The arguments of a small program that a shell might do without: what to write instead is looked for without failing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((flags, words)) = bytes.split_first() else { return };
    let words = String::from_utf8_lossy(words);
    let words: Vec<&str> = words.split('\0').collect();
    spawnscope::analyze::advice::substitute_for_fuzzing(*flags, &words);
});
