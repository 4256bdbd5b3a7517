//! The data that the stages of Spawnscope exchange, and tools that several stages need. `event` is
//! what collectors report, and `rows` is what a recording consists of, declared with `table`. Only
//! `parallel`, which creates threads, uses the operating system.

pub mod contradictions;
pub mod event;
pub mod ids;
pub mod parallel;
pub mod rows;
pub mod shell_start;
pub mod statistics;
pub mod table;
pub mod units;
pub mod words;
