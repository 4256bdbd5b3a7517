//! Generates the smallest static program without a compiler: an ELF header, one segment, and a few instructions for the processor
//! (`arch`).

use crate::arch;

/// The address at which the file is mapped.
const BASE: u64 = 0x40_0000;
/// Bytes of the ELF header and of one program header.
const HEADER_BYTES: u64 = 64 + 56;

/// Returns a static program that writes `word`, which may be empty, to standard output, and exits with `status`.
#[must_use]
pub fn program(status: u8, word: &str) -> Vec<u8> {
    let mut code = arch::tiny_code(status, word.len() as u8);
    code.extend(word.bytes());
    image(&code)
}

/// Returns a 64-bit ELF file whose only segment is the whole file.
fn image(code: &[u8]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, values: &[u16]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    let word = |file: &mut Vec<u8>, values: &[u32]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    let long = |file: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    // The header of an executable: entry, program headers, no section headers, then flags, sizes and counts.
    half(&mut file, &[2, arch::ELF_MACHINE]);
    word(&mut file, &[1]);
    long(&mut file, &[BASE + HEADER_BYTES, 64, 0]);
    word(&mut file, &[0]);
    half(&mut file, &[64, 56, 1, 64, 0, 0]);
    // The program header: PT_LOAD of the whole file, readable and executable.
    let size = HEADER_BYTES + code.len() as u64;
    word(&mut file, &[1, 5]);
    long(&mut file, &[0, BASE, BASE, size, size, 0x1000]);
    file.extend(code);
    file
}
