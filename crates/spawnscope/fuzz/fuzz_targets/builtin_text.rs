//! Fuzzes the search for shell text that replaces a small program. The input is a byte of flags and
//! the arguments, separated by NUL.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((flags, words)) = bytes.split_first() else { return };
    let words = String::from_utf8_lossy(words);
    let words: Vec<&str> = words.split('\0').collect();
    spawnscope_analyze::explain::advice::substitute_for_fuzzing(*flags, &words);
});
