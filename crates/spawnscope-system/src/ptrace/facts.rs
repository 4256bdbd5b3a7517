//! What a new process finds out just before its exec, in its `ExecDetour`: the file that it
//! executes, its working directory, and the pipes behind its standard descriptors. The process
//! itself needs a microsecond for all of it. Its tracer would need ten times as long, because
//! /proc has no entries of a new process until they are looked up, and the end of the process
//! would take longer, because they are removed then.

use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;

use super::registers::Registers;
use crate::memory::{self, number_at};
use spawnscope_data::event::{Nanos, Pid};

/// Size in bytes of what the process stores at its stack pointer: the time, the status of each
/// file, and the path of the working directory.
const BYTES: usize = CWD_AT + CWD_BYTES;
const FILES_AT: usize = 16;
/// Distance in bytes between two statuses (`struct stat`), the last bytes of which are unused.
const FILE_STRIDE: usize = 120;
/// The file that is executed, the root directory, and standard input, output and error.
const FILES: usize = 5;
const CWD_AT: usize = FILES_AT + FILES * FILE_STRIDE;
const CWD_BYTES: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecFacts {
    /// When the process entered its detour.
    pub entered: Nanos,
    /// The file that the path leads to.
    pub file: FileVersion,
    pub cwd: Vec<u8>,
    /// The inodes of the pipes behind standard input, output and error.
    pub pipes: [Option<u64>; 3],
}

/// A file up to its next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileVersion {
    pub device: u64,
    pub inode: u64,
    mode: u32,
    /// The time of the last change, in seconds and nanoseconds.
    changed: [i64; 2],
}

impl FileVersion {
    pub fn of(file: &std::fs::Metadata) -> FileVersion {
        let changed = [file.ctime(), file.ctime_nsec()];
        FileVersion { device: file.dev(), inode: file.ino(), mode: file.mode(), changed }
    }

    /// Parses a `struct stat`.
    fn parse(bytes: &[u8]) -> Option<FileVersion> {
        let word = |at| number_at(bytes, at).map(u64::from_le_bytes);
        Some(FileVersion {
            device: word(0)?,
            inode: word(8)?,
            mode: number_at(bytes, 24).map(u32::from_le_bytes)?,
            changed: [word(104)?.cast_signed(), word(112)?.cast_signed()],
        })
    }
}

impl ExecFacts {
    /// Reads the facts of a thread that has stopped in its detour. `None` if one of them is not
    /// known, or if it has another root directory than this process, so that the path of its
    /// working directory has another meaning.
    pub(super) fn read(thread: Pid, registers: &Registers) -> Option<ExecFacts> {
        ExecFacts::parse(&memory::read(thread, registers.stack_pointer(), BYTES), registers.detoured_result())
    }

    /// `sum`: the sum of all results, of which only that of the last call is not 0 if none has
    /// failed, the length of the path with its NUL.
    fn parse(bytes: &[u8], sum: i64) -> Option<ExecFacts> {
        let entered = parse_time(bytes)?;
        let status = |index: usize| FileVersion::parse(bytes.get(FILES_AT + index * FILE_STRIDE..)?);
        let cwd = bytes.get(CWD_AT..)?.split(|byte| *byte == 0).next()?;
        let file = status(0)?;
        let root = status(1)?;
        let (own_root, pipes_device) = own_files()?;
        if usize::try_from(sum) != Ok(cwd.len() + 1) || (root.device, root.inode) != own_root {
            return None;
        }
        let pipe = |index| {
            let file = status(index)?;
            (file.mode & libc::S_IFMT == libc::S_IFIFO && file.device == pipes_device).then_some(file.inode)
        };
        Some(ExecFacts { entered, file, cwd: cwd.to_vec(), pipes: [pipe(2), pipe(3), pipe(4)] })
    }
}

/// Returns the root directory of this process, and the device of all pipes without a name.
fn own_files() -> Option<((u64, u64), u64)> {
    static FOUND: OnceLock<Option<((u64, u64), u64)>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let root = std::fs::metadata("/").ok()?;
        let (pipe, _) = std::io::pipe().ok()?;
        Some(((root.dev(), root.ino()), rustix::fs::fstat(pipe).ok()?.st_dev))
    })
}

/// Returns when a thread that is in its detour entered its execve.
pub(super) fn time(thread: Pid, registers: &Registers) -> Option<Nanos> {
    parse_time(&memory::read(thread, registers.stack_pointer(), FILES_AT))
}

/// Parses the `struct timespec` at the beginning of the stored bytes.
fn parse_time(bytes: &[u8]) -> Option<Nanos> {
    let [seconds, nanos] = [0, 8].map(|at| number_at(bytes, at).map(u64::from_le_bytes));
    Some(Nanos(seconds?.saturating_mul(1_000_000_000).saturating_add(nanos?)))
}

/// Length in bytes of `code`. 0: it is not known for this processor.
pub(super) const CODE_BYTES: usize = if cfg!(target_arch = "x86_64") { 139 } else { 0 };

/// Collects the facts about the exec of the path in r8. The sum of the results is in r10. If there
/// is no file of this name, skips the rest and `skipped` bytes after it. Leaves the flags
/// unchanged.
#[cfg(target_arch = "x86_64")]
pub(super) fn code(skipped: usize) -> Vec<u8> {
    let call = |number: u8| [0xb8, number, 0, 0, 0, 0x0f, 0x05]; // mov eax, NUMBER; syscall
    let stride = FILE_STRIDE as u8;
    let next = [0x48, 0x8d, 0x76, stride]; // lea rsi, [rsi + FILE_STRIDE]
    let add = [0x4d, 0x8d, 0x14, 0x02]; // lea r10, [r10 + rax]
    let mut collect = Vec::from(next);
    collect.extend([0x6a, b'/', 0x48, 0x89, 0xe7]); // push '/'; mov rdi, rsp
    collect.extend(call(libc::SYS_stat as u8));
    collect.push(0x5f); // pop rdi
    collect.extend(add);
    for descriptor in 0..3 {
        collect.extend(next);
        collect.extend([0x6a, descriptor, 0x5f]); // push DESCRIPTOR; pop rdi
        collect.extend(call(libc::SYS_fstat as u8));
        collect.extend(add);
    }
    collect.extend([0x48, 0x8d, 0x7e, stride]); // lea rdi, [rsi + FILE_STRIDE]
    collect.push(0x68); // push CWD_BYTES
    collect.extend((CWD_BYTES as u32).to_le_bytes());
    collect.push(0x5e); // pop rsi
    collect.extend(call(libc::SYS_getcwd as u8));
    collect.extend(add);

    let mut code = Vec::from([0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp - BYTES]
    code.extend((-(BYTES as i32)).to_le_bytes());
    // push CLOCK_MONOTONIC; pop rdi; mov rsi, rsp
    code.extend([0x6a, libc::CLOCK_MONOTONIC as u8, 0x5f, 0x48, 0x89, 0xe6]);
    code.extend(call(libc::SYS_clock_gettime as u8));
    // lea rsi, [rsi + FILES_AT]; mov rdi, r8
    code.extend([0x48, 0x8d, 0x76, FILES_AT as u8, 0x4c, 0x89, 0xc7]);
    code.extend(call(libc::SYS_stat as u8));
    // mov r10, rax; lea ecx, [rax + ENOENT]; jrcxz
    code.extend([0x49, 0x89, 0xc2, 0x8d, 0x48, 2, 0xe3, (collect.len() + skipped) as u8]);
    code.extend(collect);
    code
}

/// Frees the room on the stack: lea rsp, [rsp + BYTES].
#[cfg(target_arch = "x86_64")]
pub(super) fn end_code() -> Vec<u8> {
    [&[0x48, 0x8d, 0xa4, 0x24][..], &(BYTES as i32).to_le_bytes()].concat()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_code_has_its_length_and_its_jump_reaches_its_end() {
        let code = code(20);
        assert_eq!(code.len(), CODE_BYTES);
        assert_eq!(code[42] as usize, CODE_BYTES - 43 + 20);
    }
}
