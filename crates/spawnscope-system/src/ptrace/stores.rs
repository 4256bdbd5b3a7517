//! Stops a process when it next stores a variable of its program. Each instruction that stores it
//! becomes a jump to a few of our own instructions, the detours. They store the variable and, if a
//! word is not zero, send the thread a signal that is ignored by default (`entry::SIGNAL`). The
//! detours and the word are at the unused end of the last page of the same code, before those of
//! `exec`. fork copies them, so that the tracer chooses by the word which processes stop; exec
//! discards them. All instructions address memory relative to themselves, so they are the same in
//! each process that runs the program.
//!
//! aarch64 addresses variables by two instructions, which may be apart: there are no detours.

use std::io;

use super::entry::SIGNAL;
#[cfg(target_arch = "x86_64")]
use super::exec::SEND;
use super::exec::{UNUSED_BYTES, code_of};
use super::registers::Registers;
use super::request::{poke, write};
use super::unblocking::is_blocked;
use crate::memory;
use spawnscope_data::event::Pid;

const WORD_BYTES: usize = size_of::<u64>();
const MAX_STORES: usize = 8;
const DETOUR_BYTES: usize = 72;

/// The detours of the stores of one variable of a program, with addresses in its file.
#[derive(Debug)]
pub struct StoreDetours {
    /// The address of the detours, which the word follows.
    start: u64,
    code: Vec<u8>,
    /// The addresses of the stores, and the jumps in their place with the bytes after them.
    jumps: Vec<(u64, u64)>,
}

impl StoreDetours {
    /// Prepares the detours of the stores of a variable in the code around `code_start`, given both
    /// addresses in the file, and the process's addresses minus those. `None` if there is no room,
    /// or if the program stores the variable in another way.
    pub fn prepare(process: Pid, bias: u64, code_start: u64, variable: u64) -> Option<StoreDetours> {
        let inside = code_start.wrapping_add(bias);
        let mapping = code_of(process).into_iter().find(|mapping| mapping.range.contains(&inside))?;
        let code = memory::read(process, mapping.range.start, usize::try_from(mapping.length()).ok()?);
        let first = mapping.range.start.wrapping_sub(bias);
        let stores = (1..code.len()).filter(|at| is_store(&code[*at..], first + *at as u64, variable));
        let stores: Vec<usize> = stores.take(MAX_STORES + 1).collect();
        let length = stores.len() * DETOUR_BYTES + WORD_BYTES;
        let unused = code.len().checked_sub(UNUSED_BYTES + length)?;
        let is_unused = code[unused..].iter().all(|byte| *byte == 0);
        if stores.is_empty() || stores.len() > MAX_STORES || !is_unused {
            return None;
        }
        let start = first + unused as u64;
        let word = start + (length - WORD_BYTES) as u64;
        let mut detours = StoreDetours { start, code: Vec::new(), jumps: Vec::new() };
        for at in stores {
            let (store, detour) = (first + at as u64, start + detours.code.len() as u64);
            detours.code.extend(detour_of(&code[at..], store, detour, [variable, word])?);
            detours.jumps.push((store, u64::from_ne_bytes(jump_over(&code[at - 1..], store, detour)?)));
        }
        detours.code.extend([0; WORD_BYTES]);
        Some(detours)
    }

    /// Installs the detours in a stopped process that runs the program. Its next stores do not
    /// stop.
    pub fn install(&self, process: Pid, bias: u64) -> io::Result<()> {
        write(process, self.start.wrapping_add(bias), &self.code)?;
        self.jumps.iter().try_for_each(|(store, jump)| poke(process, store.wrapping_add(bias) - 1, *jump))
    }

    /// Chooses whether a stopped process that has the detours stops at its next store. Fails if it
    /// would not stop because it blocks the signal.
    pub fn choose(&self, process: Pid, bias: u64, stops: bool) -> io::Result<()> {
        if stops && is_blocked(process)? {
            return Err(io::Error::other("the signal is blocked"));
        }
        let word = self.start + (self.code.len() - WORD_BYTES) as u64;
        poke(process, word.wrapping_add(bias), stops.into())
    }

    /// Whether a thread that has stopped by `signal` is in a detour.
    pub fn is_reached_by(&self, thread: Pid, bias: u64, signal: i32) -> bool {
        let is_in = |address: u64| address.wrapping_sub(self.start.wrapping_add(bias)) < self.code.len() as u64;
        signal == i32::from(SIGNAL) && Registers::read(thread).is_ok_and(|registers| is_in(registers.instruction()))
    }
}

/// Length in bytes of a store: mov [rip + OFFSET], REGISTER.
#[cfg(target_arch = "x86_64")]
const STORE_BYTES: usize = 6;

/// Returns the distance from the end of an instruction to what it addresses.
#[cfg(target_arch = "x86_64")]
fn distance(end: u64, to: u64) -> Option<[u8; 4]> {
    Some(i32::try_from(to.wrapping_sub(end).cast_signed()).ok()?.to_le_bytes())
}

#[cfg(target_arch = "x86_64")]
fn is_store(code: &[u8], address: u64, variable: u64) -> bool {
    matches!(code, [0x89, register, offset @ ..] if register & 0xc7 == 0x05
        && distance(address + STORE_BYTES as u64, variable).is_some_and(|distance| offset.starts_with(&distance)))
}

/// Returns the word that begins with the byte before a store, with a jump to the detour. `None` if
/// that byte may belong to the store, and say that it stores another size or register.
#[cfg(target_arch = "x86_64")]
fn jump_over(code: &[u8], store: u64, detour: u64) -> Option<[u8; WORD_BYTES]> {
    let mut word = *code.first_chunk::<WORD_BYTES>()?;
    word[1] = 0xe9;
    word[2..6].copy_from_slice(&distance(store + 5, detour)?);
    word[6] = 0x90;
    (word[0] != 0x66 && word[0] & 0xf0 != 0x40).then_some(word)
}

/// Returns the instructions of a detour, which leave all registers and flags unchanged. The 128
/// bytes below the stack pointer may be in use.
#[cfg(target_arch = "x86_64")]
fn detour_of(store: &[u8], at: u64, detour: u64, [variable, word]: [u64; 2]) -> Option<[u8; DETOUR_BYTES]> {
    let mut code = Vec::from(&store[..2]);
    code.extend(distance(detour + STORE_BYTES as u64, variable)?);
    code.extend([0x48, 0x8d, 0x64, 0x24, 0x80, 0x51, 0x8b, 0x0d]); // lea rsp, [rsp - 128]; push rcx; mov ecx, [WORD]
    code.extend(distance(detour + code.len() as u64 + 4, word)?);
    code.extend([0xe3, 31, 0x50, 0x56, 0x57, 0x41, 0x53]); // jrcxz to pop rcx; push rax, rsi, rdi, r11
    code.extend(SEND);
    code.extend([0x41, 0x5b, 0x5f, 0x5e, 0x58, 0x59]); // pop r11, rdi, rsi, rax, rcx
    code.extend([0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, 0xe9]); // lea rsp, [rsp + 128]; jmp
    code.extend(distance(detour + code.len() as u64 + 4, at + STORE_BYTES as u64)?);
    code.resize(DETOUR_BYTES, 0x90);
    code.try_into().ok()
}

#[cfg(target_arch = "aarch64")]
fn is_store(_: &[u8], _: u64, _: u64) -> bool {
    false
}

#[cfg(target_arch = "aarch64")]
fn jump_over(_: &[u8], _: u64, _: u64) -> Option<[u8; WORD_BYTES]> {
    None
}

#[cfg(target_arch = "aarch64")]
fn detour_of(_: &[u8], _: u64, _: u64, _: [u64; 2]) -> Option<[u8; DETOUR_BYTES]> {
    None
}
