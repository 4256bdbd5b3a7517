//! Stops a new process only at its execs. The instruction of the C library that loads the number of
//! execve becomes a jump to a few of our own instructions, the detour. They send the thread a
//! signal that is ignored by default (`entry::SIGNAL`), call execve, and send the signal again if
//! it returns, which means that it has failed. A tracer sees the signals, with the call in the
//! registers; without a tracer, they have no effect. ptrace gets a detour, too, because a child may
//! ask to be traced before its exec, and prctl, because a child may ask for no new privileges and
//! then set a seccomp filter, which may forbid the calls of a detour.
//!
//! In the GNU C library, whose children have enough stack, a detour of execve also collects facts
//! about the exec (`facts`). If there is no file of this name, as in most directories of PATH, the
//! first signal is left out.
//!
//! The detours are written to the unused end of the last page of the same code, since a jump does
//! not reach the vDSO. Only the memory of the process changes, not the file. fork copies the
//! changes; exec discards them.
//!
//! In some programs, such as those in Go, one function makes all system calls, and its callers load
//! the numbers. Then the instruction before the call of that function becomes the jump. Its detour
//! sends the signal before the call, which must be traced.

use std::io;
use std::ops::Range;

use super::entry::SIGNAL;
use super::facts::{self, ExecFacts};
use super::registers::{CallInfo, CallStop, Registers};
use super::request::{poke, write};
#[cfg(target_arch = "aarch64")]
use crate::arch::movz;
use crate::{memory, procfs};
use spawnscope_data::event::{Nanos, Pid};

const WORD_BYTES: usize = size_of::<u64>();
/// The calls that get a detour.
const NUMBERS: [u8; 3] = [libc::SYS_execve as u8, libc::SYS_ptrace as u8, libc::SYS_prctl as u8];
const MAX_CALLS: usize = 4;
/// Room for a detour of execve, and of another call.
const EXEC_BYTES: usize = 264;
const OTHER_BYTES: usize = 88;
/// Number of bytes of the stack that are searched for the caller of a function that makes system
/// calls.
const MAX_FRAMES_BYTES: usize = 1024;
/// Number of bytes on both sides of an instruction among which the function around it usually is.
const FUNCTION_BYTES: u64 = 1 << 13;
/// Maximum number of bytes from the end of an instruction that loads a number to the end of the
/// call of the function that needs it.
const MAX_LOAD_TO_RETURN: usize = 16;
/// Bytes at the end of the code that must be zero, which means that they are unused.
pub(super) const UNUSED_BYTES: usize = 2 * EXEC_BYTES + 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecPoint {
    /// The device as in /proc/PID/maps, and the inode.
    file: (String, u64),
    /// The offsets in the file, and the numbers of the calls.
    calls: Vec<(u64, u8)>,
    is_ahead: bool,
    collects_facts: bool,
}

impl ExecPoint {
    /// Finds the calls in the code of a process that is in an execve. Returns `None` if it loads
    /// the number in another way.
    pub fn of(process: Pid, call: &CallInfo) -> Option<ExecPoint> {
        let found = ExecPoint::ending_at(process, call.instruction);
        found.or_else(|| ExecPoint::ahead_of(process, call.stack_pointer))
    }

    /// Finds the calls if the number is loaded just before a call of a function, to which the stack
    /// still leads.
    fn ahead_of(process: Pid, stack: u64) -> Option<ExecPoint> {
        let frames = memory::read(process, stack, MAX_FRAMES_BYTES);
        let (words, _) = frames.as_chunks::<WORD_BYTES>();
        let code = code_of(process);
        words.iter().map(|word| u64::from_ne_bytes(*word)).find_map(|returns_to| {
            let mapping = code.iter().find(|mapping| mapping.range.contains(&returns_to))?;
            let start = returns_to.saturating_sub(FUNCTION_BYTES).max(mapping.range.start);
            let around = memory::read(process, start, 2 * FUNCTION_BYTES as usize);
            let next = usize::try_from(returns_to - start).ok()?;
            let function = function_called_before(around.get(..next)?)?.wrapping_add(next);
            let mut calls = Vec::new();
            for number in NUMBERS {
                let load = load_of(number);
                let is_load = |at: &usize| around[*at..].starts_with(&load);
                let found =
                    (0..around.len()).filter(|at| is_load(at) && soon_calls(&around, at + load.len(), function));
                calls.extend(found.map(|at| (mapping.offset + (start - mapping.range.start) + at as u64, number)));
            }
            let is_known = calls.iter().filter(|(_, number)| *number == NUMBERS[0]).count() == 1;
            (is_known && calls.len() <= MAX_CALLS).then(|| ExecPoint {
                file: mapping.file.clone(),
                calls,
                is_ahead: true,
                collects_facts: false,
            })
        })
    }

    /// Finds the calls if the execve ends at the instruction `next`.
    fn ending_at(process: Pid, next: u64) -> Option<ExecPoint> {
        let exec = call_of(NUMBERS[0]);
        let address = next.checked_sub(exec.len() as u64)?;
        let mapping = code_of(process).into_iter().find(|mapping| mapping.range.contains(&address))?;
        let code = memory::read(process, mapping.range.start, usize::try_from(mapping.length()).ok()?);
        let mut calls = Vec::new();
        for number in NUMBERS {
            let call = call_of(number);
            let found = (0..code.len()).filter(|at| code[*at] == call[0] && code[*at..].starts_with(&call));
            calls.extend(found.map(|at| (mapping.offset + at as u64, number)));
        }
        let is_known = calls.contains(&(address - mapping.range.start + mapping.offset, NUMBERS[0]));
        let collects_facts = facts::CODE_BYTES > 0 && mapping.is_gnu_library;
        let file = mapping.file;
        (is_known && calls.len() <= MAX_CALLS).then_some(ExecPoint { file, calls, is_ahead: false, collects_facts })
    }
}

/// The detours of the calls of execve and ptrace in one file. The addresses are those of a process
/// and of its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecDetour([Option<CallDetour>; MAX_CALLS]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallDetour {
    /// The address of the instruction that is replaced.
    call: u64,
    number: u8,
    /// Whether the detour is ahead of the call, which other instructions make.
    is_ahead: bool,
    collects_facts: bool,
    /// The bytes from `call` on, before and with the jump.
    words: [u64; 2],
    start: u64,
}

impl ExecDetour {
    /// Prepares the detours of the first of these files that a process has in its memory, if there
    /// is room for them.
    pub fn prepare(process: Pid, points: &[ExecPoint]) -> Option<ExecDetour> {
        let code = if points.is_empty() { Vec::new() } else { code_of(process) };
        let (mapping, point) = code.iter().find_map(|mapping| {
            let is_in_it = |point: &&ExecPoint| {
                let covered = mapping.offset..mapping.offset + mapping.length();
                point.file == mapping.file && point.calls.iter().all(|(offset, _)| covered.contains(offset))
            };
            Some((mapping, points.iter().find(is_in_it)?))
        })?;
        let unused = mapping.range.end - UNUSED_BYTES as u64;
        if memory::read(process, unused, UNUSED_BYTES) != [0; UNUSED_BYTES] {
            return None;
        }
        let (mut detours, mut start) = ([None; MAX_CALLS], mapping.range.end);
        for (detour, (offset, number)) in detours.iter_mut().zip(&point.calls) {
            start = start.checked_sub(bytes_of(*number) as u64).filter(|start| *start >= unused)?;
            let call = mapping.range.start + offset - mapping.offset;
            *detour = Some(CallDetour::prepare(process, call, *number, point, start)?);
        }
        Some(ExecDetour(detours))
    }

    /// Installs the detours in a stopped process that has the same memory as the one for which they
    /// were prepared.
    pub fn install(&self, process: Pid) -> io::Result<()> {
        // They are one after another, the last one first.
        let detours = || self.0.iter().rev().flatten();
        let code: Option<Vec<_>> = detours().map(CallDetour::code).collect();
        let code = code.ok_or_else(|| io::Error::other("the call is too far away"))?;
        write(process, detours().map(|detour| detour.start).min().unwrap_or_default(), &code.concat())?;
        detours().try_for_each(|detour| poke(process, detour.call, detour.words[1]))
    }

    /// Removes the jumps to the detours from a stopped process. The detours remain, because a
    /// thread may be in them.
    pub fn remove(&self, process: Pid) {
        for detour in self.0.iter().flatten() {
            let _ = poke(process, detour.call, detour.words[0]);
        }
    }

    /// Returns the call that a thread enters or leaves, if the thread has stopped by `signal` in a
    /// detour. The first three arguments are known. `CallStop::Neither`: the call is one of the
    /// next ones.
    pub fn call_at(&self, thread: Pid, signal: i32) -> Option<DetouredCall> {
        if signal != i32::from(SIGNAL) {
            return None;
        }
        let registers = Registers::read(thread).ok()?;
        self.0.iter().flatten().find_map(|detour| {
            let offset = registers.instruction().checked_sub(detour.start + detour.facts_bytes() as u64)?;
            let stop = match usize::try_from(offset).ok()? {
                AHEAD_AT if detour.is_ahead => CallStop::Neither,
                ENTERED_AT => CallStop::Enters(detour.number.into(), registers.detoured_arguments()),
                LEFT_AT => CallStop::Leaves(registers.detoured_result()),
                _ => return None,
            };
            Some(DetouredCall { stop, registers, has_facts: detour.facts_bytes() > 0 })
        })
    }
}

/// The system call that a thread enters or leaves in a detour.
pub struct DetouredCall {
    pub stop: CallStop,
    registers: Registers,
    has_facts: bool,
}

impl DetouredCall {
    /// Reads what the thread knows about the exec that it enters.
    pub fn facts(&self, thread: Pid) -> Option<ExecFacts> {
        self.has_facts.then(|| ExecFacts::read(thread, &self.registers))?
    }

    /// Returns when a thread that leaves an execve has entered it, and its first argument. `None`
    /// if the detour does not store the time.
    pub fn entry(&self, thread: Pid) -> Option<(Nanos, u64)> {
        let [path, ..] = self.registers.detoured_arguments();
        self.has_facts.then(|| Some((facts::time(thread, &self.registers)?, path)))?
    }
}

/// Whether one of the next instructions calls a function, whose address is relative to the code.
fn soon_calls(code: &[u8], from: usize, function: usize) -> bool {
    let mut ends = (from..code.len()).take(MAX_LOAD_TO_RETURN);
    ends.any(|end| function_called_before(&code[..end]).is_some_and(|called| called.wrapping_add(end) == function))
}

impl CallDetour {
    fn prepare(process: Pid, call: u64, number: u8, point: &ExecPoint, start: u64) -> Option<CallDetour> {
        let ExecPoint { is_ahead, collects_facts, .. } = *point;
        let (expected, load) = (call_of(number), load_of(number));
        let bytes = memory::read(process, call, expected.len().max(WORD_BYTES));
        if !bytes.starts_with(if is_ahead { &load } else { &expected }) {
            return None;
        }
        let mut word = *bytes.first_chunk::<WORD_BYTES>()?;
        let original = u64::from_ne_bytes(word);
        let jump = jump(call, start)?;
        word[..jump.len()].copy_from_slice(&jump);
        Some(CallDetour { call, number, is_ahead, collects_facts, words: [original, u64::from_ne_bytes(word)], start })
    }

    /// Length in bytes of the instructions that collect facts.
    fn facts_bytes(&self) -> usize {
        let is_exec = libc::c_long::from(self.number) == libc::SYS_execve;
        if self.collects_facts && is_exec { facts::CODE_BYTES } else { 0 }
    }
}

/// Returns the room for the detour of a call.
fn bytes_of(number: u8) -> usize {
    if libc::c_long::from(number) == libc::SYS_execve { EXEC_BYTES } else { OTHER_BYTES }
}

pub(super) struct Mapping {
    pub(super) range: Range<u64>,
    offset: u64,
    file: (String, u64),
    is_gnu_library: bool,
}

impl Mapping {
    pub(super) fn length(&self) -> u64 {
        self.range.end - self.range.start
    }
}

pub(super) fn code_of(process: Pid) -> Vec<Mapping> {
    let maps = procfs::contents(process, "maps").unwrap_or_default();
    let maps = String::from_utf8_lossy(&maps);
    let hexadecimal = |digits| u64::from_str_radix(digits, 16).ok();
    let code = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let range = hexadecimal(start)?..hexadecimal(end)?;
        words.next().filter(|permissions| *permissions == "r-xp")?;
        let offset = hexadecimal(words.next()?)?;
        let file = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let name = words.next().and_then(|path| path.rsplit('/').next());
        let is_gnu_library = name.is_some_and(|name| name == "libc.so.6" || name.starts_with("libc-2."));
        Some(Mapping { range, offset, file, is_gnu_library })
    });
    code.filter(|mapping| mapping.file.1 != 0).collect()
}

/// Returns the instructions of a system call: mov eax, NUMBER; syscall.
#[cfg(target_arch = "x86_64")]
fn call_of(number: u8) -> [u8; 7] {
    [0xb8, number, 0, 0, 0, 0x0f, 0x05]
}

/// Returns the instruction that loads the number: mov eax, NUMBER.
#[cfg(target_arch = "x86_64")]
fn load_of(number: u8) -> [u8; 5] {
    [0xb8, number, 0, 0, 0]
}

/// Returns the function that the last of these instructions calls, relative to their end; `None` if
/// it is no call.
#[cfg(target_arch = "x86_64")]
fn function_called_before(code: &[u8]) -> Option<usize> {
    let (call, distance) = code.split_last_chunk::<4>()?;
    (call.last() == Some(&0xe8)).then(|| i32::from_le_bytes(*distance) as usize)
}

/// Returns the instruction that jumps from `from` to `to`; `None` if it is too far away.
#[cfg(target_arch = "x86_64")]
fn jump(from: u64, to: u64) -> Option<[u8; 5]> {
    let distance = i32::try_from(to.wrapping_sub(from + 5).cast_signed()).ok()?;
    let [first, second, third, fourth] = distance.to_le_bytes();
    Some([0xe9, first, second, third, fourth])
}

/// Offset in a detour ahead of a call of the instruction after the signal.
#[cfg(target_arch = "x86_64")]
const AHEAD_AT: usize = 31;
/// Offset in a detour without facts of the instruction after the first signal.
#[cfg(target_arch = "x86_64")]
const ENTERED_AT: usize = 38;
/// Offset in a detour of execve without facts of the instruction after the second signal.
#[cfg(target_arch = "x86_64")]
const LEFT_AT: usize = 75;

#[cfg(target_arch = "x86_64")]
impl Registers {
    fn detoured_arguments(&self) -> [u64; 6] {
        [self.0.r8, self.0.r9, self.0.rdx, 0, 0, 0]
    }

    pub(super) fn detoured_result(&self) -> i64 {
        self.0.r10.cast_signed()
    }
}

/// tkill(gettid(), SIGNAL): mov eax, SYS_gettid; syscall; mov edi, eax; mov esi, SIGNAL; mov eax,
/// SYS_tkill; syscall.
#[cfg(target_arch = "x86_64")]
pub(super) const SEND: [u8; 21] =
    [0xb8, 186, 0, 0, 0, 0x0f, 5, 0x89, 0xc7, 0xbe, SIGNAL, 0, 0, 0, 0xb8, 200, 0, 0, 0, 0x0f, 5];

#[cfg(target_arch = "x86_64")]
impl CallDetour {
    /// Returns the instructions of the detour, which preserve the registers that a system call
    /// preserves. During the signals, r8 and r9 are the first arguments, and r10 is the result. The
    /// 128 bytes below the stack pointer may be in use. A tracer of its own would see the second
    /// signal of a ptrace, so there is none.
    fn code(&self) -> Option<Vec<u8>> {
        let mut code = if self.is_ahead { self.code_ahead() } else { self.code_around() };
        let length = if self.is_ahead { load_of(self.number).len() } else { call_of(self.number).len() };
        code.extend(jump(self.start + code.len() as u64, self.call + length as u64)?);
        code.resize(bytes_of(self.number), 0);
        Some(code)
    }

    /// Returns the instructions up to the jump back if the call follows it.
    fn code_ahead(&self) -> Vec<u8> {
        // lea rsp, [rsp - 128]; push rcx, rsi, rdi, r11
        let before = [0x48, 0x8d, 0x64, 0x24, 0x80, 0x51, 0x56, 0x57, 0x41, 0x53];
        // pop r11, rdi, rsi, rcx; lea rsp, [rsp + 128]
        let after = [0x41, 0x5b, 0x5f, 0x5e, 0x59, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0];
        [&before[..], &SEND, &after, &load_of(self.number)].concat()
    }

    fn code_around(&self) -> Vec<u8> {
        let before = [
            0x48, 0x8d, 0x64, 0x24, 0x80, // lea rsp, [rsp - 128]
            0x41, 0x50, 0x41, 0x51, 0x41, 0x52, // push r8, r9, r10
            0x49, 0x89, 0xf8, 0x49, 0x89, 0xf1, // mov r8, rdi; mov r9, rsi
        ];
        let restored = [0x4c, 0x89, 0xc7, 0x4c, 0x89, 0xce]; // mov rdi, r8; mov rsi, r9
        let after = [
            0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, // pop r10, r9, r8
            0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, // lea rsp, [rsp + 128]
        ];
        let is_exec = libc::c_long::from(self.number) == libc::SYS_execve;
        let collects_facts = self.facts_bytes() > 0;
        let facts = if collects_facts { facts::code(SEND.len()) } else { Vec::new() };
        let mut code = [&before[..], &facts, &SEND, &restored].concat();
        if !is_exec {
            // Further arguments: mov r8, [rsp + 16]; mov r9, [rsp + 8]
            code.extend([0x4c, 0x8b, 0x44, 0x24, 16, 0x4c, 0x8b, 0x4c, 0x24, 8]);
        }
        code.extend(call_of(self.number));
        if is_exec {
            code.extend([0x49, 0x89, 0xc2]); // mov r10, rax
            code.extend(SEND);
            code.extend([0x4c, 0x89, 0xd0]); // mov rax, r10
            code.extend(restored);
        }
        if collects_facts {
            code.extend(facts::end_code());
        }
        code.extend(after);
        code
    }
}

/// Returns the instructions of a system call: movz x8, NUMBER; svc 0.
#[cfg(target_arch = "aarch64")]
fn call_of(number: u8) -> [u8; 8] {
    let [first, second] = [movz(8, number.into()), 0xd400_0001].map(u64::from);
    (second << 32 | first).to_le_bytes()
}

/// Returns the instruction that loads the number: movz x8, NUMBER.
#[cfg(target_arch = "aarch64")]
fn load_of(number: u8) -> [u8; 4] {
    movz(8, number.into()).to_le_bytes()
}

/// Callers load the number into another register than the call needs, which is not supported.
#[cfg(target_arch = "aarch64")]
fn function_called_before(_: &[u8]) -> Option<usize> {
    None
}

#[cfg(target_arch = "aarch64")]
const AHEAD_AT: usize = usize::MAX;

/// Returns the instruction that jumps from `from` to `to`; `None` if it is too far away.
#[cfg(target_arch = "aarch64")]
fn jump(from: u64, to: u64) -> Option<[u8; 4]> {
    const MAX_INSTRUCTIONS: i64 = 1 << 25;
    let distance = to.wrapping_sub(from).cast_signed() / 4;
    let is_near = (-MAX_INSTRUCTIONS..MAX_INSTRUCTIONS).contains(&distance);
    is_near.then(|| (0x1400_0000 | distance as u32 & 0x03ff_ffff).to_le_bytes())
}

/// Offset in a detour of the instruction after the first signal.
#[cfg(target_arch = "aarch64")]
const ENTERED_AT: usize = 9 * 4;
/// Offset in a detour of execve of the instruction after the second signal.
#[cfg(target_arch = "aarch64")]
const LEFT_AT: usize = 19 * 4;

#[cfg(target_arch = "aarch64")]
impl Registers {
    fn detoured_arguments(&self) -> [u64; 6] {
        [self.0.regs[9], self.0.regs[10], self.0.regs[2], 0, 0, 0]
    }

    pub(super) fn detoured_result(&self) -> i64 {
        self.0.regs[11].cast_signed()
    }
}

#[cfg(target_arch = "aarch64")]
impl CallDetour {
    /// Returns the instructions of the detour, which preserve the registers that a system call
    /// preserves. During the signals, x9 and x10 are the first arguments, and x11 is the result. A
    /// tracer of its own would see the second signal of a ptrace, so there is none.
    fn code(&self) -> Option<Vec<u8>> {
        const SYSTEM_CALL: u32 = 0xd400_0001; // svc 0
        // tkill(gettid(), SIGNAL)
        let send = [movz(8, 178), SYSTEM_CALL, movz(1, u32::from(SIGNAL)), movz(8, 130), SYSTEM_CALL];
        let before = [
            0xa9be_2be9, // stp x9, x10, [sp, -32]!
            0xf900_0beb, // str x11, [sp, 16]
            0xaa00_03e9, // mov x9, x0
            0xaa01_03ea, // mov x10, x1
        ];
        // mov x0, x9; mov x1, x10; the call
        let call = [0xaa09_03e0, 0xaa0a_03e1, movz(8, self.number.into()), SYSTEM_CALL];
        let mut instructions = [&before[..], &send, &call].concat();
        if libc::c_long::from(self.number) == libc::SYS_execve {
            instructions.push(0xaa00_03eb); // mov x11, x0
            instructions.extend(send);
            // mov x0, x11; mov x1, x10; the number
            instructions.extend([0xaa0b_03e0, 0xaa0a_03e1, movz(8, self.number.into())]);
        }
        instructions.extend([0xf940_0beb, 0xa8c2_2be9]); // ldr x11, [sp, 16]; ldp x9, x10, [sp], 32
        let mut code: Vec<u8> = instructions.into_iter().flat_map(u32::to_le_bytes).collect();
        code.extend(jump(self.start + code.len() as u64, self.call + 8)?);
        code.resize(bytes_of(self.number), 0);
        Some(code)
    }
}
