//! The smallest programs there can be, written without a compiler: an ELF header, a segment, and a few instructions that
//! end with a status nobody else ends with; one of them writes a word first.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::LabError;

/// What the tiny programs end with: the proof that it was they who ran.
pub const STATUS: i32 = 42;
/// What the speaker writes.
pub const WORD: &str = "ran\n";

const BASE: u64 = 0x40_0000;
const HEADERS: u64 = 64 + 56;

/// Writes a program that may be executed.
///
/// # Errors
/// When the file cannot be written, or this architecture's instructions are not known here.
pub fn write(path: &Path, word: Option<&str>) -> Result<(), LabError> {
    let code = code(word.unwrap_or_default())
        .ok_or_else(|| LabError::Unavailable("the lab knows the instructions of x86-64 and aarch64 only".to_owned()))?;
    let doing = || LabError::doing(format!("write {}", path.display()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o755)
        .open(path)
        .map_err(doing())?;
    file.write_all(&image(&code)).map_err(doing())
}

/// Instructions, and the word behind them.
fn code(word: &str) -> Option<Vec<u8>> {
    let status = STATUS as u8;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiny_programs_prove_that_they_ran() {
        let folder = tempfile::tempdir().unwrap();
        for (name, word) in [("tiny", None), ("speaker", Some(WORD))] {
            let path = folder.path().join(name);
            write(&path, word).unwrap();
            let output = std::process::Command::new(&path).output().unwrap();
            assert_eq!(output.status.code(), Some(STATUS), "{name}");
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word.unwrap_or_default());
        }
    }
}
