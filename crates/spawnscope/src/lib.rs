//! Spawnscope: a causal profiler for process launches.
//!
//! Data goes one way: `collect` (reads the kernel) -> `record` (one SQLite file) -> `analyze` (pure) -> `present` (pure). `event`
//! is the vocabulary of the first two. `cli` holds the verbs that join the stages. `hold`, `lab` and `doctor` are not part of this
//! chain: they record nothing.

pub mod analyze;
mod arch;
pub mod cli;
pub mod collect;
pub mod doctor;
pub mod event;
pub mod hold;
pub mod lab;
pub mod owner;
mod parallel;
pub mod present;
pub mod record;
pub mod signals;
mod statistics;
mod tiny;
pub mod units;
