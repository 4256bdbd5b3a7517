//! Reports when a dynamic loader is done and the program itself begins. A breakpoint would be simpler, but it would kill the process by
//! SIGTRAP if the tracer had been killed before. Instead, the loader jumps to a few of our own instructions, the detour. They send the thread
//! a signal that is ignored by default, and jump to the program. A tracer sees the signal; without a tracer, it has no effect.
//!
//! The instructions are written after the vDSO, into the unused rest of its last page. The loader jumps to them because the entry point in
//! the auxiliary vector is changed; it is restored when they run. The program's own code and data are not changed. fork copies both changes;
//! exec discards them.

use std::io;
use std::sync::OnceLock;

use super::registers::Registers;
use super::request::poke;
use super::unblocking::is_blocked;
#[cfg(target_arch = "aarch64")]
use crate::arch::movz;
use crate::memory;
use spawnscope_data::event::Pid;

/// A signal that is ignored by default, and that few programs use. If the thread blocks it, the tracer does not see it.
pub(super) const SIGNAL: u8 = libc::SIGURG as u8;
const PAGE_BYTES: u64 = 4096;
const WORD_BYTES: usize = size_of::<u64>();
/// Offset in an ELF header of the section headers' file offset (`e_shoff`).
const SECTION_HEADERS: usize = 0x28;
/// Offset in an ELF header of the size of a section header (`e_shentsize`). The number of section headers follows.
const SECTION_HEADER_SIZE: usize = 0x3a;

/// A detour of a loader, with addresses in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDetour {
    /// The start of the instructions.
    start: u64,
    /// The end of the instructions.
    end: u64,
    /// The address of the entry point in the auxiliary vector.
    slot: u64,
    /// The program's entry point.
    entry_point: u64,
}

impl EntryDetour {
    /// Installs the detour in a process that is stopped right after its exec. `slot` is the address of AT_ENTRY's value, `entry_point` is that
    /// value, and `vdso` is the value of AT_SYSINFO_EHDR.
    ///
    /// # Errors
    /// If there is no room after the vDSO, if the thread blocks the signal, or if it was killed.
    pub fn install(thread: Pid, slot: u64, entry_point: u64, vdso: u64) -> io::Result<EntryDetour> {
        if is_blocked(thread)? {
            return Err(io::Error::other("the signal is blocked"));
        }
        let code = code(entry_point);
        // All programs of this architecture have the same vDSO.
        static OFFSET: OnceLock<u64> = OnceLock::new();
        let offset = OFFSET.get().copied().or_else(|| {
            let found = free_offset(thread, vdso, code.len())?;
            Some(*OFFSET.get_or_init(|| found))
        });
        let start = vdso + offset.ok_or_else(|| io::Error::other("no room after the vDSO"))?;
        let (words, _) = code.as_chunks::<WORD_BYTES>();
        for (index, word) in words.iter().enumerate() {
            poke(thread, start + (index * WORD_BYTES) as u64, u64::from_ne_bytes(*word))?;
        }
        poke(thread, slot, start)?;
        Ok(EntryDetour { start, end: start + code.len() as u64, slot, entry_point })
    }

    /// Whether a thread that has stopped by `signal` is in the detour, which means that the loader is done.
    #[must_use]
    pub fn is_reached_by(&self, thread: Pid, signal: i32) -> bool {
        signal == i32::from(SIGNAL)
            && Registers::read(thread).is_ok_and(|registers| (self.start..self.end).contains(&registers.instruction()))
    }

    /// Restores the entry point in the auxiliary vector, for programs that read it (getauxval(3)).
    pub fn restore(&self, thread: Pid) {
        let _ = poke(thread, self.slot, self.entry_point);
    }
}

/// Returns the offset from the vDSO's start at which the last page of the vDSO has `length` unused bytes; `None` if it has fewer.
fn free_offset(process: Pid, vdso: u64, length: usize) -> Option<u64> {
    let header = memory::read(process, vdso, SECTION_HEADER_SIZE + 4);
    let headers = u64::from_le_bytes(memory::number_at(&header, SECTION_HEADERS)?);
    let size = u16::from_le_bytes(memory::number_at(&header, SECTION_HEADER_SIZE)?);
    let number = u16::from_le_bytes(memory::number_at(&header, SECTION_HEADER_SIZE + 2)?);
    let end = headers + u64::from(size) * u64::from(number);
    let start = end.next_multiple_of(WORD_BYTES as u64 * 2);
    // A vDSO that fills its last page has no unused bytes.
    (!end.is_multiple_of(PAGE_BYTES) && start + length as u64 <= end.next_multiple_of(PAGE_BYTES)).then_some(start)
}

/// Returns the instructions of the detour: tkill(gettid(), SIGNAL), which leaves all registers unchanged, and a jump to `entry_point`. Their
/// length is a multiple of a word.
#[cfg(target_arch = "x86_64")]
fn code(entry_point: u64) -> Vec<u8> {
    let mut code = Vec::from([
        0x50, 0x51, 0x52, 0x56, 0x57, 0x41, 0x53, // push rax, rcx, rdx, rsi, rdi, r11
        0xb8, 186, 0, 0, 0, 0x0f, 0x05, // mov eax, SYS_gettid; syscall
        0x89, 0xc7, 0xbe, SIGNAL, 0, 0, 0, // mov edi, eax; mov esi, SIGNAL
        0xb8, 200, 0, 0, 0, 0x0f, 0x05, // mov eax, SYS_tkill; syscall
        0x41, 0x5b, 0x5f, 0x5e, 0x5a, 0x59, 0x58, // pop r11, rdi, rsi, rdx, rcx, rax
        0xff, 0x25, 0, 0, 0, 0, // jmp [rip + 0]
    ]);
    code.extend(entry_point.to_le_bytes());
    code.resize(code.len().next_multiple_of(WORD_BYTES), 0x90);
    code
}

/// Returns the instructions of the detour: tkill(gettid(), SIGNAL), and a jump to `entry_point`. They preserve x0, in which the loader passes
/// its exit function. By the calling convention, the program's entry does not depend on the other registers that they change. Their length is
/// a multiple of a word.
#[cfg(target_arch = "aarch64")]
fn code(entry_point: u64) -> Vec<u8> {
    let instructions = [
        0xaa00_03e9,                // mov x9, x0
        movz(8, 178),               // SYS_gettid
        0xd400_0001,                // svc 0
        movz(1, u32::from(SIGNAL)), //
        movz(8, 130),               // SYS_tkill
        0xd400_0001,                // svc 0
        0xaa09_03e0,                // mov x0, x9
        0x5800_0050,                // ldr x16, +8
        0xd61f_0200,                // br x16
    ];
    let mut code = instructions.map(u32::to_le_bytes).concat();
    code.extend(entry_point.to_le_bytes());
    code.resize(code.len().next_multiple_of(WORD_BYTES), 0);
    code
}
