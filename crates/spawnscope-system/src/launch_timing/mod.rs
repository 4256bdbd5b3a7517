//! The tools for timing launches, shared by the calibration, the doctor and the lab. A measuring
//! process (`measuring_process`) is an isolated child (`isolated_child`) that stores its times in
//! shared memory (`shared`, `series`). It fills memory of a known size (`memory`), creates children
//! by raw system calls (`clone`), and times them (`timing`), without their waits for a CPU
//! (`run_queue_waits`). A `keeper` removes a directory of test programs even if the directory's
//! creator is killed.
//!
//! Rules for code in measuring processes and their children: these processes may be forked from
//! processes with threads, so they only make system calls, on memory that was prepared before the
//! fork. They must not allocate, lock or panic.

pub mod clone;
pub mod isolated_child;
pub mod keeper;
pub mod mappings;
pub mod measuring_process;
pub mod run_queue_waits;
pub mod series;
pub mod shared;
pub mod timing;
