//! Entry points of this stage for `fuzz/`.

use super::{ebpf, stacks};

/// Decodes a record of the ring buffer.
pub fn decode(bytes: &[u8]) {
    ebpf::fuzz_decoder(bytes);
}

/// Unwinds a stack with the unwind tables of a file.
pub fn unwind(file: &[u8], stack: &[u8]) {
    stacks::fuzz_unwinder(file, stack);
}
