//! The smallest static program, made without a compiler: an ELF header, one segment, and a few
//! instructions for the processor (`arch`). It is also executed from memory, where no scanner sees
//! it, to time launches.

use std::io;
use std::os::fd::{OwnedFd, RawFd};

use crate::arch;

/// The address at which the file is mapped.
const BASE: u64 = 0x40_0000;
/// Bytes of the ELF header and of one program header.
const HEADER_BYTES: u64 = 64 + 56;

/// Returns a static program that writes `word`, which may be empty, to standard output, and exits
/// with `status`.
pub fn program(status: u8, word: &str) -> Vec<u8> {
    let mut code = arch::tiny_code(status, word.len() as u8);
    code.extend(word.bytes());
    image(&code)
}

/// Creates an anonymous file with a program. Makes system calls only.
pub fn in_memory(program: &[u8]) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(c"spawnscope", rustix::fs::MemfdFlags::CLOEXEC)?;
    let written = rustix::io::write(&file, program)?;
    if written == program.len() { Ok(file) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Executes the program in such a file, without arguments and environment, or exits with status
/// 127. Makes system calls only.
pub fn execute(file: RawFd) -> ! {
    let none = [std::ptr::null::<libc::c_char>()];
    // SAFETY: the empty path selects the descriptor itself, and both lists end with NULL.
    unsafe {
        libc::syscall(libc::SYS_execveat, file, c"".as_ptr(), none.as_ptr(), none.as_ptr(), libc::AT_EMPTY_PATH);
        libc::_exit(127)
    }
}

/// Returns a 64-bit ELF file whose only segment is the whole file.
fn image(code: &[u8]) -> Vec<u8> {
    let size = HEADER_BYTES + code.len() as u64;
    [
        // The header of an executable: entry, program headers, no section headers, then flags,
        // sizes and counts.
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".as_slice(),
        [2, arch::ELF_MACHINE].map(u16::to_le_bytes).as_flattened(),
        &1u32.to_le_bytes(),
        [BASE + HEADER_BYTES, 64, 0].map(u64::to_le_bytes).as_flattened(),
        &0u32.to_le_bytes(),
        [64, 56, 1, 64, 0, 0].map(u16::to_le_bytes).as_flattened(),
        // The program header: PT_LOAD of the whole file, readable and executable.
        [1, 5].map(u32::to_le_bytes).as_flattened(),
        [0, BASE, BASE, size, size, 0x1000].map(u64::to_le_bytes).as_flattened(),
        code,
    ]
    .concat()
}
