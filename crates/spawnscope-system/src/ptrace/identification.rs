//! Counts the CPUID instructions at the start of a program: the loader and the C library identify the processor with them, and their number
//! depends on both the library and the processor. A traced child executes the program. Its CPUID instructions are replaced by breakpoints
//! when the code that has them is mapped, and the tracer answers in place of the processor, so each is counted whenever it is executed.
//!
//! Only the child's memory is changed. Bytes that look like the instruction, but are part of another one, may end the child; nothing is
//! counted then. This runs in measuring processes and keeps their rules (`launch_timing`): it only makes system calls.

use std::arch::x86_64::__cpuid_count;
use std::ffi::{CStr, c_int};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::event::{Event, Stop};
use super::registers::{CallInfo, CallStop, Registers};
use super::request::{Options, Resume, message, poke, resume, seize};
use crate::launch_timing::clone::fork;
use crate::memory;
use crate::process::die_with_parent;
use spawnscope_data::event::Pid;

/// The instruction, and what replaces its first byte.
const CPUID: [u8; 2] = [0x0f, 0xa2];
const BREAKPOINT: u8 = 0xcc;
/// Maximum number of CPUID instructions that are followed. The loader of glibc 2.36 has 37, its C library one.
const MAX_INSTRUCTIONS: usize = 256;
/// A program that stops more often is given up: `true` makes less than 200 system calls.
const MAX_STOPS: usize = 20_000;
/// Bytes of code that are read at a time.
const CHUNK: usize = 4096;

/// Executes a program without arguments, and returns how many CPUID instructions its loader and its libraries executed. `None` if it has no
/// loader, if it fails, or if tracing is not permitted.
#[must_use]
pub fn count(program: &CStr) -> Option<u32> {
    let (child, start) = held(program)?;
    let options = Options::EXEC | Options::SYSTEM_CALLS | Options::KILL_ON_EXIT;
    let counted = seize(child, options).ok().and_then(|()| {
        // The child executes the program once it has read the end of the pipe.
        drop(start);
        Count::new(child).finish()
    });
    // SAFETY: plain system calls on our own child. It was not reaped if nothing was counted; otherwise both fail.
    unsafe {
        if counted.is_none() {
            libc::kill(child.0, libc::SIGKILL);
        }
        libc::waitpid(child.0, std::ptr::null_mut(), libc::__WALL);
    }
    counted
}

/// Forks a child that executes the program when the returned end of a pipe is closed.
fn held(program: &CStr) -> Option<(Pid, OwnedFd)> {
    let (begin, end) = pipe2(OFlag::O_CLOEXEC).ok()?;
    let child = fork(|| {
        die_with_parent(libc::SIGKILL);
        let mut byte = 0u8;
        let arguments = [program.as_ptr(), std::ptr::null()];
        // SAFETY: plain system calls; the strings and lists end with NUL and with a null pointer.
        unsafe {
            libc::close(end.as_raw_fd());
            libc::read(begin.as_raw_fd(), (&raw mut byte).cast(), 1);
            libc::execve(program.as_ptr(), arguments.as_ptr(), arguments[1..].as_ptr());
        }
        127
    });
    Some((Pid(child.ok()?), end))
}

/// What is known about a child while it starts.
struct Count {
    child: Pid,
    addresses: [u64; MAX_INSTRUCTIONS],
    known: usize,
    executed: u32,
    /// Length of the mapping of code that the child is about to make.
    mapping: Option<u64>,
}

impl Count {
    fn new(child: Pid) -> Count {
        Count {
            child,
            addresses: [0; MAX_INSTRUCTIONS],
            known: 0,
            executed: 0,
            mapping: None,
        }
    }

    /// Follows the child to its end.
    fn finish(mut self) -> Option<u32> {
        for _ in 0..MAX_STOPS {
            match next(self.child)? {
                Event::Ended(_, status) => return (status == 0 && self.known > 0).then_some(self.executed),
                Event::Stopped(_, stop) => self.react(stop)?,
            }
        }
        None
    }

    fn react(&mut self, stop: Stop) -> Option<()> {
        match stop {
            Stop::Exec { .. } => {
                let (start, length) = loader_code(self.child)?;
                self.replace(start, length)?;
            }
            Stop::SystemCall => self.follow_mappings()?,
            Stop::Signal(libc::SIGTRAP) => self.answer()?,
            Stop::Signal(_) | Stop::Group(_) => return None,
            _ => {}
        }
        let _ = resume(self.child, Resume::ToSystemCall(0));
        Some(())
    }

    /// Looks for the instruction in code that the child has just mapped.
    fn follow_mappings(&mut self) -> Option<()> {
        match CallInfo::of(self.child).ok()?.stop {
            CallStop::Enters(number, arguments) => {
                let is_code = number == libc::SYS_mmap.cast_unsigned() && arguments[2] & libc::PROT_EXEC as u64 != 0;
                self.mapping = is_code.then_some(arguments[1]);
            }
            CallStop::Leaves(address) => {
                if let Some((start, length)) = u64::try_from(address).ok().zip(self.mapping.take()) {
                    self.replace(start, length)?;
                }
            }
            CallStop::Neither => {}
        }
        Some(())
    }

    /// Replaces each CPUID instruction in `length` bytes from `start`. Mappings may be longer than the file.
    fn replace(&mut self, start: u64, length: u64) -> Option<()> {
        let mut bytes = [0u8; CHUNK];
        // Chunks overlap, so that an instruction on their border is found.
        let step = CHUNK as u64 - 1;
        for from in (start..start + length).step_by(step as usize) {
            let most = (start + length - from).min(CHUNK as u64) as usize;
            let read = memory::read_into(self.child, from, &mut bytes[..most]);
            for at in (0..read.saturating_sub(1)).filter(|at| bytes[*at..at + 2] == CPUID) {
                self.replace_at(from + at as u64)?;
            }
            if read < most {
                break;
            }
        }
        Some(())
    }

    fn replace_at(&mut self, address: u64) -> Option<()> {
        let mut word = [0u8; size_of::<u64>()];
        let read = memory::read_into(self.child, address, &mut word);
        let slot = self.addresses.get_mut(self.known).filter(|_| read == word.len())?;
        word[0] = BREAKPOINT;
        poke(self.child, address, u64::from_ne_bytes(word)).ok()?;
        *slot = address;
        self.known += 1;
        Some(())
    }

    /// Executes the instruction that a breakpoint replaced.
    fn answer(&mut self) -> Option<()> {
        let mut registers = Registers::of(self.child).ok()?;
        let address = registers.instruction() - 1;
        if !self.addresses[..self.known].contains(&address) {
            return None;
        }
        let (leaf, subleaf) = registers.cpuid_request();
        registers.answer_cpuid(address + CPUID.len() as u64, &__cpuid_count(leaf, subleaf));
        registers.write(self.child).ok()?;
        self.executed += 1;
        Some(())
    }
}

fn next(child: Pid) -> Option<Event> {
    let mut status: c_int = 0;
    // SAFETY: `status` has room for a status.
    let pid = unsafe { libc::waitpid(child.0, &raw mut status, libc::__WALL) };
    (pid == child.0).then(|| Event::of(child, status, message))
}

/// Keys of the auxiliary vector end with AT_NULL, and it follows argc, argv and the environment: one argument, no variables.
const BEFORE_AUXILIARY: usize = 4;

/// Returns where the code of the loader is, in a child that is stopped right after its exec.
fn loader_code(child: Pid) -> Option<(u64, u64)> {
    let mut stack = [0u8; 512];
    let read = memory::read_into(child, Registers::of(child).ok()?.stack(), &mut stack);
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let (words, _) = stack[..read].as_chunks::<8>();
    let (pairs, _) = words.get(BEFORE_AUXILIARY..)?.as_chunks::<2>();
    let base = pairs.iter().find(|pair| word(&pair[0]) == libc::AT_BASE)?;
    code_of_image(child, word(&base[1])).filter(|(start, _)| *start > 0)
}

/// Returns the executable segment of an ELF file that is mapped at `base`.
fn code_of_image(child: Pid, base: u64) -> Option<(u64, u64)> {
    const EXECUTABLE: u32 = 1;
    let mut bytes = [0u8; 1024];
    let read = memory::read_into(child, base, &mut bytes);
    let image = &bytes[..read];
    let long = |at: usize| Some(u64::from_le_bytes(*image.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(*image.get(at..)?.first_chunk()?)));
    // Offset, size and number of the program headers; in each, type, flags, address and size.
    let (headers, size, number) = (usize::try_from(long(0x20)?).ok()?, half(0x36)?, half(0x38)?);
    let code = (0..number).map(|index| headers + index * size).find(|at| {
        let [kind, flags] = [word(*at), word(at + 4)];
        kind == Some(libc::PT_LOAD) && flags.is_some_and(|flags| flags & EXECUTABLE != 0)
    })?;
    Some((base + long(code + 0x10)?, long(code + 0x28)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_start_of_a_program_identifies_the_processor_each_time() {
        // A C library other than glibc may not identify it, and a sandbox may forbid tracing.
        let glibc = Command::new("/usr/bin/getconf").arg("GNU_LIBC_VERSION").output();
        if !glibc.is_ok_and(|said| said.status.success()) {
            return;
        }
        let counted = count(c"/bin/true").expect("a dynamic program that may be traced");
        assert!((10..200).contains(&counted), "{counted}");
        assert_eq!(count(c"/bin/true"), Some(counted), "it is a property of the machine");
    }

    #[test]
    fn programs_that_fail_or_are_absent_are_not_counted() {
        assert_eq!(count(c"/bin/false"), None);
        assert_eq!(count(c"/absent"), None);
    }
}
