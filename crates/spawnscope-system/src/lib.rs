//! What Spawnscope asks of the processor and the kernel directly: raw system calls, signals, the user that owns files.

pub mod arch;
pub mod owner;
pub mod signals;
pub mod tiny;
