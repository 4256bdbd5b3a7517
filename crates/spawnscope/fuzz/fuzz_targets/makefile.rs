//! Fuzzes the search for a recipe's line in a makefile. The makefile, the line number and the text
//! come from a traced process, so they are untrusted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use spawnscope_collect::fuzzing::recipe_line;

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first_chunk() else { return };
    let Some((index, rest)) = rest.split_first_chunk() else { return };
    let mut texts = rest.splitn(2, |byte| *byte == 0);
    let (text, makefile) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    let first = u32::from_le_bytes(*first);
    let lines = makefile.split(|byte| *byte == b'\n').count();
    if let Some(line) = recipe_line(makefile, first, u32::from_le_bytes(*index), text) {
        assert!(line >= first && line as usize <= lines, "line {line} of {lines}");
    }
});
