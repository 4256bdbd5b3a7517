//! The wall time and what it consisted of: the critical path, and time by program, line or phase.

pub mod concurrency;
pub mod critical_path;
pub mod flame;
pub mod groups;
pub mod spent;
pub mod summary;
