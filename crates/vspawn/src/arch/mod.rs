//! Code that depends on the processor architecture, in one file for each: how a system call is
//! made, how a child starts on its own stack, and the order of clone's arguments. The numbers of
//! system calls are libc's.
//!
//! Every file has the same functions. `call` and `clone_into` return the kernel's result, where
//! -4095..=-1 is an error.

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!("vspawn makes raw system calls and supports only Linux on x86-64 and aarch64");

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{MAX_PAGE_BYTES, call, clone_arguments, clone_into};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{MAX_PAGE_BYTES, call, clone_arguments, clone_into};

/// The child's entry function. It does not return.
pub(crate) type Entry = unsafe extern "C" fn(*const u8) -> !;
