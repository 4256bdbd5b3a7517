//! Recognizes programs by the first bytes of their file.

use libc::c_char;

pub fn is_elf(path: *const c_char) -> bool {
    read_head(path).is_some_and(|head| head == *b"\x7fELF")
}

/// Whether a file begins as a program or a script does, so that an exec is expected to succeed.
pub fn is_program(path: *const c_char) -> bool {
    read_head(path).is_some_and(|head| head == *b"\x7fELF" || head.starts_with(b"#!"))
}

fn read_head(path: *const c_char) -> Option<[u8; 4]> {
    let mut head = [0_u8; 4];
    // SAFETY: `path` is a C string, the buffer has four bytes, and the descriptor is this
    // function's own.
    let count = unsafe {
        let descriptor = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if descriptor < 0 {
            return None;
        }
        let count = libc::read(descriptor, head.as_mut_ptr().cast(), head.len());
        libc::close(descriptor);
        count
    };
    (count == 4).then_some(head)
}
