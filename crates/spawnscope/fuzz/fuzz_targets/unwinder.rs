//! Fuzzes the unwinder with an ELF file and a copy of a stack. The input is the length of the file
//! (two bytes), the file, and the stack.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (file, stack) = rest.split_at(length);
    spawnscope_collect::fuzzing::unwind(file, stack);
});
