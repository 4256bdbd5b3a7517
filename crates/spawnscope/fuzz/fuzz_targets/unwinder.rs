//! An ELF file of some process, and a copy of its stack: two bytes with the length of the file, the file, the stack.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (file, stack) = rest.split_at(length);
    spawnscope::collect::fuzzing::unwind(file, stack);
});
