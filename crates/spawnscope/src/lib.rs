//! The `spawnscope` program.
//!
//! Data flows one way: `collect` (reads the kernel) -> `record` (one SQLite file) -> `analyze`
//! (pure) -> `present` (pure). `event` defines what `collect` passes to `record`. `cli` has the
//! verbs, which connect the stages. `import` makes recordings from logs. `hold`, `lab` and `doctor`
//! are not part of this chain: they record nothing. Each stage except `present` is a crate, so the
//! compiler enforces what it may use; a test does so for `present`. The crates are re-exported here
//! under short names.

pub mod cli;
pub mod present;

pub use spawnscope_analyze as analyze;
pub use spawnscope_collect as collect;
pub use spawnscope_data::{event, parallel, statistics, units};
pub use spawnscope_doctor as doctor;
pub use spawnscope_hold as hold;
pub use spawnscope_import as import;
pub use spawnscope_lab as lab;
pub use spawnscope_recording as record;
pub use spawnscope_system::{allowed_cpus, calibrate, clock, held, job_control, owner, process, procfs, signals};
