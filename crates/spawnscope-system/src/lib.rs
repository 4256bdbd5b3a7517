//! Direct use of the processor and the kernel: raw system calls, signals, processes, files owned by
//! another user. `held` starts a command and holds it, and `job_control` stops and ends as it does.
//! `ptrace` traces processes. `launch_timing` has the tools for timing launches, and `calibrate`
//! uses them to measure the constants of this machine.

pub mod allowed_cpus;
pub mod arch;
pub mod calibrate;
pub mod clock;
pub mod control_groups;
mod exec_strings;
pub mod files;
pub mod held;
pub mod ids;
pub mod job_control;
pub mod launch_timing;
pub mod memory;
pub mod owner;
pub mod process;
pub mod procfs;
pub mod ptrace;
pub mod signals;
pub mod tiny;

pub use exec_strings::ExecStrings;
