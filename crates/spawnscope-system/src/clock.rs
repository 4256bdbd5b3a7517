//! The clock of all events and measurements.

use spawnscope_data::event::Nanos;

/// The current CLOCK_MONOTONIC time. Makes no system call where the kernel provides the clock in the vDSO.
#[must_use]
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
