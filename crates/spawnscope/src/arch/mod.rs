//! What depends on the processor that spawnscope itself runs on, one file for each: bare system calls, instructions as bytes, and
//! code for measurements. What depends on the processor of a *recording* is data: `event::syscalls`. How stacks are walked is in
//! `collect/stacks/processor`.
//!
//! Every file has the same items. Numbers of system calls are libc's.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("spawnscope knows Linux on x86-64 and aarch64 only");

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as processor;
#[cfg(target_arch = "x86_64")]
use x86_64 as processor;

pub(crate) use processor::{
    ELF_MACHINE, FORK_NUMBERS, LIBRARY_FOLDERS, call, clone_into, fill_instruction_cache, tiny_code, vfork_call,
};

/// What a child begins with. It does not return.
pub(crate) type Entry = unsafe extern "C" fn(*const u8) -> !;
