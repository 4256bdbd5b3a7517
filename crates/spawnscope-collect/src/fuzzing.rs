//! Entry points of this stage for `fuzz/`.

use super::{callers, ebpf, stacks};

/// Decodes a record of the ring buffer.
pub fn decode(bytes: &[u8]) {
    ebpf::fuzz_decoder(bytes);
}

/// Unwinds a stack with the unwind tables of a file.
pub fn unwind(file: &[u8], stack: &[u8]) {
    stacks::fuzz_unwinder(file, stack);
}

/// Searches a makefile for line `index` of the recipe that begins on line `first`.
pub fn recipe_line(makefile: &[u8], first: u32, index: u32, text: &[u8]) -> Option<u32> {
    callers::make::fuzz_recipe(makefile, first, index, text)
}
