//! Reports when a dynamic loader is done and the program itself begins. A breakpoint would be
//! simpler, but it would kill the process by SIGTRAP if the tracer had been killed before. Instead,
//! the loader jumps to a few of our own instructions, the detour. They store the wall and CPU time
//! where nothing else is, and jump to the program. If the program must stop, they also send the
//! thread a signal that is ignored by default. A tracer sees the signal; without a tracer, it has
//! no effect.
//!
//! The instructions are written after the vDSO, into the unused rest of its last page. The loader
//! jumps to them because the entry point in the auxiliary vector is changed; they restore it, for
//! programs that read it (getauxval(3)). The program's own code and data are not changed. fork
//! copies both changes; exec discards them.

use std::io;
use std::sync::OnceLock;

use super::registers::Registers;
use super::request::{poke, write};
use super::unblocking::is_blocked;
#[cfg(target_arch = "aarch64")]
use crate::arch::movz;
use crate::memory;
use spawnscope_data::event::{Nanos, Pid};

#[cfg(target_arch = "x86_64")]
use super::exec::SEND;

/// A signal that is ignored by default, and that few programs use. If the thread blocks it, the
/// tracer does not see it.
pub(super) const SIGNAL: u8 = libc::SIGURG as u8;
const PAGE_BYTES: u64 = 4096;
const WORD_BYTES: usize = size_of::<u64>();
/// Offset in an ELF header of the section headers' file offset (`e_shoff`).
const SECTION_HEADERS: usize = 0x28;
/// Offset in an ELF header of the size of a section header (`e_shentsize`). The number of section
/// headers follows.
const SECTION_HEADER_SIZE: usize = 0x3a;

/// A program that has not begun, with addresses in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub entry_point: u64,
    /// The address of AT_ENTRY's value, which is the entry point.
    pub slot: u64,
    /// Where to store the wall and the CPU time at which the program begins, each in 8 bytes that
    /// nothing else uses.
    pub times: [u64; 2],
    /// The value of AT_SYSINFO_EHDR.
    pub vdso: u64,
}

/// A detour of a loader, with addresses in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryDetour {
    start: u64,
    /// Where they store the times.
    times: [u64; 2],
}

impl EntryDetour {
    /// Installs the detour in a process that is stopped right after its exec. `stops`: whether the
    /// process stops when its program begins. Fails if there is no room after the vDSO, or if the
    /// thread blocks the signal.
    pub fn install(thread: Pid, entry: Entry, stops: bool) -> io::Result<EntryDetour> {
        if stops && is_blocked(thread)? {
            return Err(io::Error::other("the signal is blocked"));
        }
        let code = code(&entry, stops);
        // All programs of this architecture have the same vDSO.
        static OFFSET: OnceLock<u64> = OnceLock::new();
        let offset = OFFSET.get().copied().or_else(|| {
            let found = free_offset(thread, entry.vdso, code.len())?;
            Some(*OFFSET.get_or_init(|| found))
        });
        let start = entry.vdso + offset.ok_or_else(|| io::Error::other("no room after the vDSO"))?;
        write(thread, start, &code)?;
        poke(thread, entry.slot, start)?;
        Ok(EntryDetour { start, times: entry.times })
    }

    /// Whether a thread that has stopped by `signal` is in the detour, which means that the loader
    /// is done.
    pub fn is_reached_by(&self, thread: Pid, signal: i32) -> bool {
        let end = self.start + CODE_BYTES as u64;
        signal == i32::from(SIGNAL)
            && Registers::read(thread).is_ok_and(|registers| (self.start..end).contains(&registers.instruction()))
    }

    /// Returns the wall and CPU time of the process when the loader was done; `None` if it is not
    /// done yet, or was not permitted to read the clocks.
    pub fn times(&self, process: Pid) -> Option<(Nanos, Nanos)> {
        let times = memory::read_words(process, self.times)?;
        (!times.contains(&0)).then(|| (Nanos(times[0]), Nanos(times[1])))
    }
}

/// Returns the offset from the vDSO's start at which the last page of the vDSO has `length` unused
/// bytes; `None` if it has fewer.
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

const CLOCKS: [libc::clockid_t; 2] = [libc::CLOCK_MONOTONIC, libc::CLOCK_PROCESS_CPUTIME_ID];

/// Length in bytes of the detour, a multiple of a word.
#[cfg(target_arch = "x86_64")]
const CODE_BYTES: usize = 168;

/// Returns the instructions of the detour, which leave all registers unchanged: clock_gettime for
/// each time, tkill(gettid(), SIGNAL) if the process stops, and a jump to the entry point.
#[cfg(target_arch = "x86_64")]
fn code(entry: &Entry, stops: bool) -> Vec<u8> {
    let store = [0x48, 0x89, 0x01]; // mov [rcx], rax
    let mut code = Vec::from([
        0x50, 0x51, 0x52, 0x56, 0x57, 0x41, 0x53, // push rax, rcx, rdx, rsi, rdi, r11
        0x6a, 0, 0x6a, 0, // push 0, 0
    ]);
    for (clock, address) in CLOCKS.iter().zip(entry.times) {
        code.extend([0xbf, *clock as u8, 0, 0, 0, 0x48, 0x89, 0xe6]); // mov edi, CLOCK; mov rsi, rsp
        code.extend([0xb8, 228, 0, 0, 0, 0x0f, 0x05]); // mov eax, SYS_clock_gettime; syscall
        code.extend([0x48, 0x69, 0x04, 0x24, 0x00, 0xca, 0x9a, 0x3b]); // imul rax, [rsp], 1000000000
        code.extend([0x48, 0x03, 0x44, 0x24, 0x08, 0x48, 0xb9]); // add rax, [rsp + 8]; mov rcx, ADDRESS
        code.extend(address.to_le_bytes());
        code.extend(store);
    }
    code.extend([0x48, 0xb8]); // mov rax, ENTRY_POINT
    code.extend(entry.entry_point.to_le_bytes());
    code.extend([0x48, 0xb9]); // mov rcx, SLOT
    code.extend(entry.slot.to_le_bytes());
    code.extend(store);
    if stops {
        code.extend(SEND);
    }
    code.extend([
        0x48, 0x83, 0xc4, 0x10, // add rsp, 16
        0x41, 0x5b, 0x5f, 0x5e, 0x5a, 0x59, 0x58, // pop r11, rdi, rsi, rdx, rcx, rax
        0xff, 0x25, 0, 0, 0, 0, // jmp [rip + 0]
    ]);
    code.extend(entry.entry_point.to_le_bytes());
    code.resize(CODE_BYTES, 0x90);
    code
}

/// Length in bytes of the detour, a multiple of a word.
#[cfg(target_arch = "aarch64")]
const CODE_BYTES: usize = 168;

/// Returns the instructions of the detour: clock_gettime for each time, tkill(gettid(), SIGNAL) if
/// the process stops, and a jump to the entry point. They preserve x0, in which the loader passes
/// its exit function. By the calling convention, the program's entry does not depend on the other
/// registers that they change.
#[cfg(target_arch = "aarch64")]
fn code(entry: &Entry, stops: bool) -> Vec<u8> {
    const SYSTEM_CALL: u32 = 0xd400_0001; // svc 0
    const STORE: u32 = 0xf900_018a; // str x10, [x12]
    /// The number of instructions. The numbers that they load follow.
    const LENGTH: usize = 32;
    let numbers = [1_000_000_000, entry.times[0], entry.times[1], entry.slot, entry.entry_point];
    // ldr REGISTER, NUMBER, as the next instruction
    let load = |register: u32, number: usize, code: &[u32]| {
        0x5800_0000 | ((LENGTH - code.len() + 2 * number) as u32) << 5 | register
    };
    let mut code = vec![0xaa00_03e9, 0xa9bf_7fff]; // mov x9, x0; stp xzr, xzr, [sp, -16]!
    for (index, clock) in CLOCKS.iter().enumerate() {
        // mov x1, sp; SYS_clock_gettime; ldp x10, x11, [sp]
        code.extend([movz(0, *clock as u32), 0x9100_03e1, movz(8, 113), SYSTEM_CALL, 0xa940_2fea]);
        code.push(load(12, 0, &code));
        code.push(0x9b0c_2d4a); // madd x10, x10, x12, x11
        code.push(load(12, 1 + index, &code));
        code.push(STORE);
    }
    code.push(load(12, 3, &code));
    code.push(load(10, 4, &code));
    code.push(STORE);
    if stops {
        code.extend([movz(8, 178), SYSTEM_CALL, movz(1, u32::from(SIGNAL)), movz(8, 130), SYSTEM_CALL]);
    }
    code.extend([0x9100_43ff, 0xaa09_03e0]); // add sp, sp, 16; mov x0, x9
    code.push(load(16, 4, &code));
    code.push(0xd61f_0200); // br x16
    code.resize(LENGTH, 0);
    let mut bytes = code.iter().flat_map(|instruction| instruction.to_le_bytes()).collect::<Vec<_>>();
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}
