//! Reports when a dynamic loader is done and the program itself begins. A breakpoint would do, but a process that meets it after its tracer
//! was killed ends by SIGTRAP. Instead, the loader is sent through a few of our own instructions first: they send the thread a signal that is
//! ignored by default, and jump to the program. A tracer sees the signal; without a tracer, nothing happens.
//!
//! The instructions are written after the vDSO, into the unused rest of its last page; the loader finds them through the entry point in
//! the auxiliary vector, which is restored when they run. Neither is code or data of the program. fork copies both; exec discards them.

use std::io;
use std::sync::OnceLock;

use super::registers::Registers;
use super::request::poke;
use crate::memory;
use spawnscope_data::event::Pid;

/// Ignored by default, and used by few programs. It must not be blocked, or it would not be reported.
const SIGNAL: u8 = libc::SIGURG as u8;
const PAGE: u64 = 4096;
const WORD: usize = size_of::<u64>();
/// Where an ELF header has the place of the section headers, their size and their number.
const SECTIONS: usize = 0x28;
const SECTION_SIZE: usize = 0x3a;

/// A planted detour of a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDetour {
    /// Where the instructions are, and where they end.
    start: u64,
    end: u64,
    /// Where the auxiliary vector has the entry point.
    slot: u64,
    entry: u64,
}

impl EntryDetour {
    /// Sends the loader of a process that is stopped right after its exec through a detour. `slot` is the address of AT_ENTRY's value,
    /// `entry` that value, and `vdso` the value of AT_SYSINFO_EHDR.
    ///
    /// # Errors
    /// If there is no room after the vDSO, the signal is blocked, or the thread was killed.
    pub fn plant(thread: Pid, slot: u64, entry: u64, vdso: u64) -> io::Result<EntryDetour> {
        if is_blocked(thread)? {
            return Err(io::Error::other("the signal is blocked"));
        }
        let code = code(entry);
        // The vDSO of all programs of this architecture is the same.
        static ROOM: OnceLock<u64> = OnceLock::new();
        let room = ROOM.get().copied().or_else(|| {
            let found = room_behind(thread, vdso, code.len())?;
            Some(*ROOM.get_or_init(|| found))
        });
        let start = vdso + room.ok_or_else(|| io::Error::other("no room after the vDSO"))?;
        let (words, _) = code.as_chunks::<WORD>();
        for (index, word) in words.iter().enumerate() {
            poke(thread, start + (index * WORD) as u64, u64::from_ne_bytes(*word))?;
        }
        poke(thread, slot, start)?;
        Ok(EntryDetour {
            start,
            end: start + code.len() as u64,
            slot,
            entry,
        })
    }

    /// Whether a thread that stopped by `signal` is in the detour, so that the loader is done.
    #[must_use]
    pub fn is_met_by(&self, thread: Pid, signal: i32) -> bool {
        let is_inside = |registers: Registers| (self.start..self.end).contains(&registers.instruction());
        signal == i32::from(SIGNAL) && Registers::of(thread).is_ok_and(is_inside)
    }

    /// Restores the entry point in the auxiliary vector, for programs that ask for it (getauxval(3)).
    pub fn restore(&self, thread: Pid) {
        let _ = poke(thread, self.slot, self.entry);
    }
}

/// Where the vDSO's file ends, relative to its begin, if the rest of its last page has room.
fn room_behind(process: Pid, vdso: u64, length: usize) -> Option<u64> {
    let header = memory::read(process, vdso, SECTION_SIZE + 4);
    let word = header
        .get(SECTIONS..)?
        .first_chunk()
        .map(|word| u64::from_le_bytes(*word))?;
    let half = |at: usize| {
        header
            .get(at..)?
            .first_chunk()
            .map(|half| u64::from(u16::from_le_bytes(*half)))
    };
    let end = word + half(SECTION_SIZE)? * half(SECTION_SIZE + 2)?;
    let start = end.next_multiple_of(WORD as u64 * 2);
    // A file that fills its last page has no rest.
    (!end.is_multiple_of(PAGE) && start + length as u64 <= end.next_multiple_of(PAGE)).then_some(start)
}

fn is_blocked(thread: Pid) -> io::Result<bool> {
    /// `linux/ptrace.h`; the C libraries do not all have it.
    const PTRACE_GETSIGMASK: libc::c_int = 0x420a;
    let mut mask = 0u64;
    // SAFETY: the request writes one mask of the kernel's size, 8 bytes, to `mask`.
    let result = unsafe { libc::ptrace(PTRACE_GETSIGMASK as _, thread.0, size_of::<u64>(), &raw mut mask) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(mask & 1 << (SIGNAL - 1) != 0)
}

/// tkill(gettid(), SIGNAL) with all registers as they were, then a jump to `entry`. A multiple of a word long.
#[cfg(target_arch = "x86_64")]
fn code(entry: u64) -> Vec<u8> {
    let mut code = Vec::from([
        0x50, 0x51, 0x52, 0x56, 0x57, 0x41, 0x53, // push rax, rcx, rdx, rsi, rdi, r11
        0xb8, 186, 0, 0, 0, 0x0f, 0x05, // mov eax, SYS_gettid; syscall
        0x89, 0xc7, 0xbe, SIGNAL, 0, 0, 0, // mov edi, eax; mov esi, SIGNAL
        0xb8, 200, 0, 0, 0, 0x0f, 0x05, // mov eax, SYS_tkill; syscall
        0x41, 0x5b, 0x5f, 0x5e, 0x5a, 0x59, 0x58, // pop r11, rdi, rsi, rdx, rcx, rax
        0xff, 0x25, 0, 0, 0, 0, // jmp [rip + 0]
    ]);
    code.extend(entry.to_le_bytes());
    code.resize(code.len().next_multiple_of(WORD), 0x90);
    code
}

/// tkill(gettid(), SIGNAL), then a jump to `entry`. Keeps x0, in which the loader passes its exit function; the calling convention lets a
/// program's entry expect nothing of the other registers that this uses. A multiple of a word long.
#[cfg(target_arch = "aarch64")]
fn code(entry: u64) -> Vec<u8> {
    let movz = |register: u32, value: u32| 0xd280_0000 | value << 5 | register;
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
    let mut code: Vec<u8> = instructions.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    code.extend(entry.to_le_bytes());
    code.resize(code.len().next_multiple_of(WORD), 0);
    code
}
