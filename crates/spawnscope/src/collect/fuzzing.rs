//! What `fuzz/` calls of this stage.

use super::{ebpf, stacks};

/// Decodes a record of the ring buffer.
pub fn decode(bytes: &[u8]) {
    ebpf::fuzz_decoder(bytes);
}

/// Follows the unwind tables of a file along a stack.
pub fn unwind(file: &[u8], stack: &[u8]) {
    stacks::fuzz_unwinder(file, stack);
}
