//! Counts the CPUID instructions at the start of a program, by which the loader and the C library
//! identify the processor. Their number depends on the library and on the processor. A traced child
//! executes the program. When it maps code, the tracer replaces the CPUID instructions in it with
//! breakpoints. At each breakpoint, the tracer counts the instruction and emulates it.
//! Single-stepping gives the same number, but takes 91,000 steps. `arch_prctl(ARCH_SET_CPUID)`
//! makes the instruction fault, but not on every processor, and an exec resets it.
//!
//! Only the child's memory is changed. The child may crash if the bytes of a CPUID instruction
//! occur inside another instruction; the result is then unknown. This code runs in measuring
//! processes and obeys their rules (`launch_timing`): it only makes system calls.

use std::arch::x86_64::__cpuid_count;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::event::{Event, Stop};
use super::registers::{CallInfo, CallStop, Registers};
use super::request::{Options, Resume, poke, resume, seize};
use crate::launch_timing::clone::fork;
use crate::memory::{self, number_at};
use crate::process::die_with_parent;
use spawnscope_data::event::Pid;

const CPUID: [u8; 2] = [0x0f, 0xa2];
/// The int3 instruction, which replaces the first byte of a CPUID instruction.
const BREAKPOINT: u8 = 0xcc;
/// Maximum number of CPUID instructions that are replaced. The loader of glibc 2.36 has 37, its C
/// library one.
const MAX_INSTRUCTIONS: usize = 256;
/// Maximum number of stops of the child. `true` makes fewer than 200 system calls.
const MAX_STOPS: usize = 20_000;
const CHUNK_BYTES: usize = 4096;

/// Executes a program without arguments, and returns how many CPUID instructions its loader and its
/// libraries executed. `None` if it has no loader, if it fails, or if tracing is not permitted.
pub fn count(program: &CStr) -> Option<u32> {
    let (child, start) = start_held_child(program)?;
    let options = Options::EXEC | Options::SYSTEM_CALLS | Options::KILL_ON_EXIT;
    let counted = seize(child, options).ok().and_then(|()| {
        // The child executes the program once the pipe is closed.
        drop(start);
        CpuidCounter::new(child).run()
    });
    // SAFETY: plain system calls on our own child. If it was already reaped, waitpid fails.
    unsafe {
        if counted.is_none() {
            libc::kill(child.0, libc::SIGKILL);
        }
        libc::waitpid(child.0, std::ptr::null_mut(), libc::__WALL);
    }
    counted
}

/// Forks a child that executes the program when the returned write end of a pipe is closed.
fn start_held_child(program: &CStr) -> Option<(Pid, OwnedFd)> {
    let (reader, writer) = pipe2(OFlag::O_CLOEXEC).ok()?;
    let child = fork(|| {
        die_with_parent(libc::SIGKILL);
        let mut byte = 0u8;
        let arguments = [program.as_ptr(), std::ptr::null()];
        // SAFETY: plain system calls. The string ends with NUL, and the lists end with a null
        // pointer.
        unsafe {
            libc::close(writer.as_raw_fd());
            libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1);
            libc::execve(program.as_ptr(), arguments.as_ptr(), arguments[1..].as_ptr());
        }
        127
    });
    Some((Pid(child.ok()?), writer))
}

struct CpuidCounter {
    child: Pid,
    /// The addresses of the replaced instructions; the first `replaced` elements are used.
    addresses: [u64; MAX_INSTRUCTIONS],
    replaced: usize,
    executed: u32,
    /// Length in bytes of the mapping of code that the child is about to make.
    mapping_bytes: Option<u64>,
}

impl CpuidCounter {
    fn new(child: Pid) -> CpuidCounter {
        CpuidCounter { child, addresses: [0; MAX_INSTRUCTIONS], replaced: 0, executed: 0, mapping_bytes: None }
    }

    fn run(mut self) -> Option<u32> {
        for _ in 0..MAX_STOPS {
            match Event::await_of(self.child)? {
                Event::Ended(_, status) => return (status == 0 && self.replaced > 0).then_some(self.executed),
                Event::Stopped(_, stop) => self.handle_stop(stop)?,
            }
        }
        None
    }

    fn handle_stop(&mut self, stop: Stop) -> Option<()> {
        match stop {
            Stop::Exec => {
                let (start, length) = loader_code(self.child)?;
                self.replace(start, length)?;
            }
            Stop::SystemCall => self.handle_call()?,
            Stop::Signal(libc::SIGTRAP) => self.emulate()?,
            Stop::Signal(_) | Stop::Group(_) => return None,
            _ => {}
        }
        let _ = resume(self.child, Resume::ToSystemCall(0));
        Some(())
    }

    /// Replaces the CPUID instructions in code that the child maps by this system call.
    fn handle_call(&mut self) -> Option<()> {
        match CallInfo::read(self.child).ok()?.stop {
            CallStop::Enters(number, arguments) => {
                let is_code = number == libc::SYS_mmap.cast_unsigned() && arguments[2] & libc::PROT_EXEC as u64 != 0;
                self.mapping_bytes = is_code.then_some(arguments[1]);
            }
            CallStop::Leaves(address) => {
                if let Some((start, length)) = u64::try_from(address).ok().zip(self.mapping_bytes.take()) {
                    self.replace(start, length)?;
                }
            }
            CallStop::Neither => {}
        }
        Some(())
    }

    /// Replaces each CPUID instruction in `length` bytes from `start`. If the mapping is longer
    /// than its file, the rest cannot be read.
    fn replace(&mut self, start: u64, length: u64) -> Option<()> {
        let mut bytes = [0u8; CHUNK_BYTES];
        // Chunks overlap by a byte, so that an instruction across two chunks is found.
        let step = CHUNK_BYTES as u64 - 1;
        for from in (start..start + length).step_by(step as usize) {
            let wanted = (start + length - from).min(CHUNK_BYTES as u64) as usize;
            let read = memory::read_into(self.child, from, &mut bytes[..wanted]);
            for offset in (0..read.saturating_sub(1)).filter(|offset| bytes[*offset..offset + 2] == CPUID) {
                self.replace_at(from + offset as u64)?;
            }
            if read < wanted {
                break;
            }
        }
        Some(())
    }

    fn replace_at(&mut self, address: u64) -> Option<()> {
        let mut word = [0u8; size_of::<u64>()];
        let read = memory::read_into(self.child, address, &mut word);
        let slot = self.addresses.get_mut(self.replaced).filter(|_| read == word.len())?;
        word[0] = BREAKPOINT;
        poke(self.child, address, u64::from_ne_bytes(word)).ok()?;
        *slot = address;
        self.replaced += 1;
        Some(())
    }

    /// Emulates the CPUID instruction that the breakpoint has replaced, and counts it. `None` if
    /// the child has stopped for another reason.
    fn emulate(&mut self) -> Option<()> {
        let mut registers = Registers::read(self.child).ok()?;
        let address = registers.instruction() - 1;
        if !self.addresses[..self.replaced].contains(&address) {
            return None;
        }
        let (leaf, subleaf) = registers.cpuid_request();
        registers.set_cpuid_result(address + CPUID.len() as u64, &__cpuid_count(leaf, subleaf));
        registers.write(self.child).ok()?;
        self.executed += 1;
        Some(())
    }
}

/// The number of words on the initial stack before the auxiliary vector: argc, one argument, and
/// the null pointers at the end of argv and of the empty environment.
const WORDS_BEFORE_AUXILIARY: usize = 4;

/// Returns the address and the size of the loader's code, in a child that is stopped right after
/// its exec.
fn loader_code(child: Pid) -> Option<(u64, u64)> {
    let mut stack = [0u8; 512];
    let read = memory::read_into(child, Registers::read(child).ok()?.stack_pointer(), &mut stack);
    let (words, _) = stack[..read].as_chunks::<8>();
    let (pairs, _) = words.get(WORDS_BEFORE_AUXILIARY..)?.as_chunks::<2>();
    let [_, base] = pairs.iter().find(|[kind, _]| u64::from_ne_bytes(*kind) == libc::AT_BASE)?;
    code_of_image(child, u64::from_ne_bytes(*base)).filter(|(start, _)| *start > 0)
}

/// Returns the address and the size of the executable segment of an ELF file that is mapped at
/// `base`.
fn code_of_image(child: Pid, base: u64) -> Option<(u64, u64)> {
    const EXECUTABLE: u32 = 1;
    let mut bytes = [0u8; 1024];
    let read = memory::read_into(child, base, &mut bytes);
    let image = &bytes[..read];
    // The ELF header contains offset, size and number of the program headers, each of which
    // contains type, flags, address and size.
    let headers = usize::try_from(u64::from_le_bytes(number_at(image, 0x20)?)).ok()?;
    let size = usize::from(u16::from_le_bytes(number_at(image, 0x36)?));
    let number = usize::from(u16::from_le_bytes(number_at(image, 0x38)?));
    let code = (0..number).map(|index| headers + index * size).find(|at| {
        let [kind, flags] = [*at, at + 4].map(|at| number_at(image, at).map(u32::from_le_bytes));
        kind == Some(libc::PT_LOAD) && flags.is_some_and(|flags| flags & EXECUTABLE != 0)
    })?;
    let [address, bytes] = [code + 0x10, code + 0x28].map(|at| number_at(image, at).map(u64::from_le_bytes));
    Some((base + address?, bytes?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn each_start_of_a_program_executes_the_same_number_of_cpuid_instructions() {
        // Other C libraries than glibc may not use the instruction.
        let glibc = Command::new("/usr/bin/getconf").arg("GNU_LIBC_VERSION").output();
        if !glibc.is_ok_and(|output| output.status.success()) {
            return;
        }
        let counted = count(c"/bin/true").expect("a dynamic program that may be traced");
        assert!((10..200).contains(&counted), "{counted}");
        assert_eq!(count(c"/bin/true"), Some(counted), "the number is a property of the machine");
    }

    #[test]
    fn a_program_that_fails_or_does_not_exist_has_no_count() {
        assert_eq!(count(c"/bin/false"), None);
        assert_eq!(count(c"/absent"), None);
    }
}
