//! The smallest program there can be, made without a compiler: an ELF header, a segment, and a few instructions.

const BASE: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;

/// A static program that writes a word, which may be empty, and ends with that status. `None` where the machine's instructions are
/// not known here.
#[must_use]
pub fn program(status: u8, word: &str) -> Option<Vec<u8>> {
    code(status, word).map(|code| image(&code))
}

/// Instructions, and the word behind them.
fn code(status: u8, word: &str) -> Option<Vec<u8>> {
    let length = word.len() as u8;
    let mut code = Vec::new();
    if cfg!(target_arch = "x86_64") {
        if length > 0 {
            // mov edi, 1; mov edx, length; mov eax, edi (SYS_write); lea rsi, [rip + 14]; syscall
            code.extend([0xbf, 1, 0, 0, 0, 0xba, length, 0, 0, 0, 0x89, 0xf8]);
            code.extend([0x48, 0x8d, 0x35, 14, 0, 0, 0, 0x0f, 0x05]);
        }
        // mov edi, status; mov eax, SYS_exit_group; syscall
        code.extend([0xbf, status, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05]);
    } else if cfg!(target_arch = "aarch64") {
        let movz = |register: u32, value: u32| (0xd280_0000 | value << 5 | register).to_le_bytes();
        let svc = 0xd400_0001u32.to_le_bytes();
        if length > 0 {
            // mov x0, 1; adr x1, 7 instructions on; mov x2, length; mov x8, SYS_write; svc 0
            code.extend([movz(0, 1), (0x1000_0000u32 | 7 << 5 | 1).to_le_bytes()].concat());
            code.extend([movz(2, u32::from(length)), movz(8, 64), svc].concat());
        }
        code.extend([movz(0, u32::from(status)), movz(8, 94), svc].concat());
    } else {
        return None;
    }
    code.extend(word.bytes());
    Some(code)
}

/// An ELF file of 64 bits whose only segment is the file itself.
fn image(code: &[u8]) -> Vec<u8> {
    let machine: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, values: &[u16]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    let word = |file: &mut Vec<u8>, values: &[u32]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    let long = |file: &mut Vec<u8>, values: &[u64]| values.iter().for_each(|value| file.extend(value.to_le_bytes()));
    // An executable; entry, program headers, no section headers; flags; sizes and counts.
    half(&mut file, &[2, machine]);
    word(&mut file, &[1]);
    long(&mut file, &[BASE + HEADERS, 64, 0]);
    word(&mut file, &[0]);
    half(&mut file, &[64, 56, 1, 64, 0, 0]);
    // PT_LOAD, readable and executable: the whole file.
    let size = HEADERS + code.len() as u64;
    word(&mut file, &[1, 5]);
    long(&mut file, &[0, BASE, BASE, size, size, 0x1000]);
    file.extend(code);
    file
}
