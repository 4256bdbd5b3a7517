//! The processor-dependent part of stack walking. There is one file per processor, all with the
//! same items: DWARF's numbers of the relevant registers, where a call leaves the return address,
//! how to recognize a call, and how to step over frames that no unwind table describes.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;
