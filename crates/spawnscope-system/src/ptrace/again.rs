//! Executes a program again, untraced. The kernel gives a traced process no privilege by a
//! set-user-ID file, and this is seen only after the exec. Nothing of the program has run yet, so
//! its memory may be changed: a few instructions at its first one repeat the exec, which discards
//! them.

use std::io;

use super::registers::Registers;
use super::request::poke;
#[cfg(target_arch = "aarch64")]
use crate::arch::movz;
use spawnscope_data::event::Pid;

/// Makes a process that is stopped right after its exec repeat the exec when it is detached from.
/// `arguments`: those of the exec, as addresses in the new memory. If the exec fails now, the
/// process exits with status 127. Fails if the process may not be changed because its user may not
/// read the program.
pub fn execute_again(process: Pid, arguments: [u64; 3]) -> io::Result<()> {
    let mut registers = Registers::read(process)?;
    let code = code();
    let (words, _) = code.as_chunks::<{ size_of::<u64>() }>();
    for (index, word) in words.iter().enumerate() {
        poke(process, registers.instruction() + (index * size_of::<u64>()) as u64, u64::from_ne_bytes(*word))?;
    }
    registers.set_exec(arguments);
    registers.write(process)
}

/// Returns the instructions: execve and, if it returns, exit_group(127). The kernel sets rax to 0
/// when the first exec returns.
#[cfg(target_arch = "x86_64")]
fn code() -> [u8; 24] {
    [
        0xb8, 59, 0, 0, 0, 0x0f, 0x05, // mov eax, SYS_execve; syscall
        0xbf, 127, 0, 0, 0, // mov edi, 127
        0xb8, 231, 0, 0, 0, 0x0f, 0x05, // mov eax, SYS_exit_group; syscall
        0x90, 0x90, 0x90, 0x90, 0x90,
    ]
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    fn set_exec(&mut self, [path, argv, environment]: [u64; 3]) {
        (self.0.rdi, self.0.rsi, self.0.rdx) = (path, argv, environment);
    }
}

/// Returns the instructions: execve and, if it returns, exit_group(127). The kernel sets x0 to 0
/// when the first exec returns, so the path is passed in x9.
#[cfg(target_arch = "aarch64")]
fn code() -> [u8; 24] {
    let instructions = [
        0xaa09_03e0,    // mov x0, x9
        movz(8, 221),   // SYS_execve
        0xd400_0001,    // svc 0
        movz(0, 127),   //
        movz(8, 94),    // SYS_exit_group
        0xd400_0001u32, // svc 0
    ];
    let mut code = [0; 24];
    for (bytes, instruction) in code.chunks_exact_mut(4).zip(instructions) {
        bytes.copy_from_slice(&instruction.to_le_bytes());
    }
    code
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    fn set_exec(&mut self, [path, argv, environment]: [u64; 3]) {
        (self.0.regs[9], self.0.regs[1], self.0.regs[2]) = (path, argv, environment);
    }
}
