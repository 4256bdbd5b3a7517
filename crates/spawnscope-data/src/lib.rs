//! The data that the stages of Spawnscope exchange, and tools that several stages need. `event` is what collectors report, and `rows` is
//! what a recording consists of, declared with `table`. Nothing here reads a file or queries the kernel.

pub mod contradictions;
pub mod event;
pub mod parallel;
pub mod rows;
pub mod statistics;
pub mod table;
pub mod units;
