//! What depends on the processor when stacks are walked, one file for each, all with the same items: DWARF's numbers of the registers
//! that matter, where a call leaves the address to return to, what a call looks like, and frames that no table describes.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;
