//! Perf events that follow a process and everything that it launches (perf_event_open(2)). Each CPU has a dummy software event, which counts
//! nothing and only writes records of forks, execs, mappings, exits and context switches, and an event that copies stacks. `events` defines
//! both, `ring` opens an event and reads its ring buffer, `record` and `stack` parse the contents, and `refusal` explains why the kernel
//! refuses events.
//!
//! Rules of the kernel that shape this module:
//! - An inherited event can have a ring buffer only if it is bound to one CPU, so each CPU has its own.
//! - Without privilege, an event may follow only the user's own processes, and may not count in the kernel.
//! - The memory of ring buffers is limited by `kernel.perf_event_mlock_kb` for each CPU, and beyond that by RLIMIT_MEMLOCK.
//! - If a ring buffer is full, further records are dropped and counted.
//! - When a process executes a set-user-ID program or a file that its user may not read, the kernel removes its events.

mod events;
mod record;
pub(crate) mod refusal;
mod ring;
mod stack;

pub(crate) use self::events::{Rings, follow};
pub(crate) use self::record::{File, Record, RecordKind, VDSO, parse};
pub(crate) use self::ring::Ring;
pub(crate) use self::stack::{Stack, parse_stacks};
