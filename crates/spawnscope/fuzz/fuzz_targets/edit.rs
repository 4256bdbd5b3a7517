//! Fuzzes the edits of scripts, makefiles and packages. The input is a byte that selects the edit,
//! a byte for the line, the program and its arguments separated by NUL, a newline, and the text of
//! the file. An edit must stay within the file, and a script must stay readable.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [selector, line, rest @ ..] = bytes else { return };
    let Some(newline) = rest.iter().position(|byte| *byte == b'\n') else { return };
    let (words, text) = (&rest[..newline], &rest[newline + 1..]);
    let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
    spawnscope_analyze::explain::advice::edit_for_fuzzing(*selector, u32::from(*line), &words, text);
});
