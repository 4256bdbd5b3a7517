//! The registers of a stopped thread, and the system call that it is in.

use std::io;
use std::mem::MaybeUninit;

use spawnscope_data::event::Pid;

/// Type of register set for PTRACE_GETREGSET: general registers (`linux/elf.h`).
const NT_PRSTATUS: usize = 1;
/// From `linux/ptrace.h`, since Linux 5.3. Not every C library defines it.
const PTRACE_GET_SYSCALL_INFO: libc::c_int = 0x420e;

#[derive(Clone, Copy)]
pub struct Registers(pub(super) libc::user_regs_struct);

impl Registers {
    pub fn read(thread: Pid) -> io::Result<Registers> {
        read(thread, NT_PRSTATUS).map(Registers)
    }

    pub(super) fn write(&mut self, thread: Pid) -> io::Result<()> {
        let mut buffer = libc::iovec { iov_base: (&raw mut self.0).cast(), iov_len: size_of_val(&self.0) };
        // SAFETY: the request reads `iov_len` bytes from the registers.
        let result = unsafe { libc::ptrace(libc::PTRACE_SETREGSET, thread.0, NT_PRSTATUS, &raw mut buffer) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Registers {
    /// Returns the number and first two arguments of the system call that the thread is in.
    pub fn system_call(&self) -> (libc::c_long, [u64; 2]) {
        (self.0.orig_rax.cast_signed(), [self.0.rdi, self.0.rsi])
    }

    /// Returns the number, first argument and result of the system call that the thread is leaving.
    /// `None` if it is in none.
    pub fn ended_call(&self, _: Pid) -> Option<(libc::c_long, u64, i64)> {
        let number = self.0.orig_rax.cast_signed();
        (number >= 0).then(|| (number, self.0.rdi, self.0.rax.cast_signed()))
    }

    /// The third argument of the system call that the thread is in or is leaving.
    pub fn third_argument(&self) -> u64 {
        self.0.rdx
    }

    pub fn stack_pointer(&self) -> u64 {
        self.0.rsp
    }

    pub fn instruction(&self) -> u64 {
        self.0.rip
    }

    pub(super) fn cpuid_request(&self) -> (u32, u32) {
        (self.0.rax as u32, self.0.rcx as u32)
    }

    /// Sets the result of the CPUID instruction, and `next` as the address of the next instruction.
    pub(super) fn set_cpuid_result(&mut self, next: u64, result: &std::arch::x86_64::CpuidResult) {
        let registers = &mut self.0;
        (registers.rax, registers.rbx) = (result.eax.into(), result.ebx.into());
        (registers.rcx, registers.rdx) = (result.ecx.into(), result.edx.into());
        registers.rip = next;
    }

    /// Returns the thread pointer of a stopped thread, by which the C library finds the thread's
    /// data; `None` if the thread was killed.
    pub fn thread_pointer(thread: Pid) -> Option<u64> {
        Registers::read(thread).ok().map(|registers| registers.0.fs_base)
    }
}

#[cfg(target_arch = "aarch64")]
impl Registers {
    pub fn thread_pointer(thread: Pid) -> Option<u64> {
        /// Type of register set for PTRACE_GETREGSET: the register TPIDR_EL0 (`linux/elf.h`).
        const NT_ARM_TLS: usize = 0x401;
        read(thread, NT_ARM_TLS).ok()
    }

    pub fn system_call(&self) -> (libc::c_long, [u64; 2]) {
        (self.0.regs[8].cast_signed(), [self.0.regs[0], self.0.regs[1]])
    }

    /// Returns the number, first argument and result of the system call that the thread is leaving.
    /// `None` if it is in none. The result has overwritten the first argument, so 0 is returned in
    /// its place, as if `wait4` waited for any child.
    pub fn ended_call(&self, thread: Pid) -> Option<(libc::c_long, u64, i64)> {
        /// Type of register set for PTRACE_GETREGSET: the number of the current system call, or -1.
        const NT_ARM_SYSTEM_CALL: usize = 0x404;
        let number: i32 = read(thread, NT_ARM_SYSTEM_CALL).ok()?;
        (number >= 0).then(|| (libc::c_long::from(number), 0, self.0.regs[0].cast_signed()))
    }

    pub fn third_argument(&self) -> u64 {
        self.0.regs[2]
    }

    pub fn stack_pointer(&self) -> u64 {
        self.0.sp
    }

    pub fn instruction(&self) -> u64 {
        self.0.pc
    }
}

/// Reads a register set of a stopped thread. `T` consists of integers.
fn read<T>(thread: Pid, set: usize) -> io::Result<T> {
    let mut registers = MaybeUninit::<T>::zeroed();
    let mut buffer = libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of::<T>() };
    // SAFETY: the request writes at most `iov_len` bytes to `registers`.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, thread.0, set, &raw mut buffer) };
    // SAFETY: any bytes are valid integers.
    if result == 0 { Ok(unsafe { registers.assume_init() }) } else { Err(io::Error::last_os_error()) }
}

/// Whether a stopped thread enters or leaves a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStop {
    /// The thread enters the system call with this number and these arguments.
    Enters(u64, [u64; 6]),
    /// The thread leaves a system call with this result. A negative result is a negated errno.
    Leaves(i64),
    /// The thread is stopped for another reason.
    Neither,
}

/// What PTRACE_GET_SYSCALL_INFO reports about a stopped thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallInfo {
    pub stop: CallStop,
    /// The audit architecture (AUDIT_ARCH_*) of the thread. For a 32-bit program it is not
    /// `NATIVE_AUDIT_ARCH`.
    pub architecture: u32,
    pub instruction: u64,
    pub stack_pointer: u64,
}

/// `struct ptrace_syscall_info` up to its entry and exit members.
#[repr(C)]
#[derive(Default)]
struct RawCallInfo {
    op: u8,
    padding: [u8; 3],
    architecture: u32,
    instruction_pointer: u64,
    stack_pointer: u64,
    number_or_result: u64,
    arguments: [u64; 6],
    data: u64,
}

/// The audit architecture of 64-bit programs on this processor: EM_* with the bits for 64 bits and
/// little endian.
pub const NATIVE_AUDIT_ARCH: u32 = 0xc000_0000 | crate::arch::ELF_MACHINE as u32;

impl CallInfo {
    /// Reads the information about a stopped thread. Fails on kernels older than 5.3.
    pub fn read(thread: Pid) -> io::Result<CallInfo> {
        let mut raw = RawCallInfo::default();
        let size = size_of::<RawCallInfo>();
        // SAFETY: the request writes at most `size` bytes to `raw`.
        let result = unsafe { libc::ptrace(PTRACE_GET_SYSCALL_INFO as _, thread.0, size, &raw mut raw) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(CallInfo {
            stop: match raw.op {
                1 => CallStop::Enters(raw.number_or_result, raw.arguments),
                2 => CallStop::Leaves(raw.number_or_result.cast_signed()),
                _ => CallStop::Neither,
            },
            architecture: raw.architecture,
            instruction: raw.instruction_pointer,
            stack_pointer: raw.stack_pointer,
        })
    }
}
