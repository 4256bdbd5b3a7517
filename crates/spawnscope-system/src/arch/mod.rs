//! Code that depends on the processor that spawnscope runs on, one file per architecture: raw
//! system calls, the machine code of tiny programs, and code for measurements. All files define the
//! same items. System call numbers come from libc.
//!
//! Other code depends on the processor as well: the system call numbers of a *recording's*
//! architecture are data (`event::syscalls`), and stack walking is in `spawnscope-collect`
//! (`stacks/processor`).

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("spawnscope supports Linux on x86-64 and aarch64 only");

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::movz;
pub use processor::{
    ELF_MACHINE, FORK_NUMBERS, LIBRARY_DIRECTORIES, call, clone_into, fill_instruction_cache, tiny_code, vfork_call,
};

/// The function that a child starts in. It does not return.
pub type Entry = unsafe extern "C" fn(*const u8) -> !;
