//! A one-shot breakpoint in the code of a stopped process. Planting it gives the process a copy of one page of its code.

use std::io;

use super::registers::Registers;
use spawnscope_data::event::Pid;

/// The instruction that raises SIGTRAP, as its low bytes in memory, and their mask in a word.
#[cfg(target_arch = "x86_64")]
const TRAP: (u64, u64) = (0xcc, 0xff);
#[cfg(target_arch = "aarch64")]
const TRAP: (u64, u64) = (0xd420_0000, 0xffff_ffff);

/// How far behind the trap the thread is stopped.
#[cfg(target_arch = "x86_64")]
const TRAP_LENGTH: u64 = 1;
#[cfg(target_arch = "aarch64")]
const TRAP_LENGTH: u64 = 0;

/// A planted breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    address: u64,
    /// The word that was there.
    original: u64,
}

impl Breakpoint {
    /// Plants one in the process of a stopped thread.
    ///
    /// # Errors
    /// If there is no memory at the address, or the thread was killed.
    pub fn plant(thread: Pid, address: u64) -> io::Result<Breakpoint> {
        let original = peek(thread, address)?;
        let (trap, mask) = TRAP;
        poke(thread, address, original & !mask | trap)?;
        Ok(Breakpoint { address, original })
    }

    /// Whether a thread that stopped by SIGTRAP has hit it.
    #[must_use]
    pub fn is_hit_by(&self, thread: Pid) -> bool {
        Registers::of(thread).is_ok_and(|registers| registers.instruction() == self.address + TRAP_LENGTH)
    }

    /// Restores the code, through any stopped thread that has this memory. Does nothing to a process that has other code there by now.
    pub fn remove(&self, thread: Pid) {
        let (trap, mask) = TRAP;
        if let Ok(now) = peek(thread, self.address)
            && now & mask == trap
        {
            let _ = poke(thread, self.address, now & !mask | self.original & mask);
        }
    }

    /// Lets a thread that has hit it continue at the instruction that it replaced.
    pub fn step_back(&self, thread: Pid) {
        if let Ok(mut registers) = Registers::of(thread) {
            registers.continue_at(self.address);
            let _ = registers.give_to(thread);
        }
    }
}

fn peek(thread: Pid, address: u64) -> io::Result<u64> {
    let mut word = 0u64;
    // The system call, unlike the C library's function, writes the word to `data`, which leaves all values for the word.
    // SAFETY: the request writes one word to `word`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_ptrace,
            libc::PTRACE_PEEKDATA as libc::c_long,
            libc::c_long::from(thread.0),
            address,
            &raw mut word,
        )
    };
    if result == 0 { Ok(word) } else { Err(io::Error::last_os_error()) }
}

fn poke(thread: Pid, address: u64, word: u64) -> io::Result<()> {
    // SAFETY: the request does not access our memory.
    let result = unsafe { libc::ptrace(libc::PTRACE_POKEDATA, thread.0, address, word) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
