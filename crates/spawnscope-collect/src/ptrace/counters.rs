//! The scheduler's counters of a thread (schedstat), from which its waits follow.

use std::fs::File;
use std::os::unix::fs::FileExt;

use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::clock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) at: Nanos,
    /// Time on CPUs, in nanoseconds.
    pub(super) ran: u64,
    /// Time in the run queue, in nanoseconds.
    pub(super) delayed: u64,
    /// How often the thread got a CPU.
    pub(super) arrivals: u64,
}

impl Counters {
    pub(super) fn at_beginning_of(self, stop: Option<(Pid, Nanos)>) -> Counters {
        Counters { at: stop.map_or(self.at, |(_, since)| since), ..self }
    }
}

/// Reads the counters: time on CPUs, time in the run queue, number of times that the thread got a
/// CPU.
pub(super) fn read_counters(schedstat: &File) -> Option<Counters> {
    let mut bytes = [0; 80];
    let length = schedstat.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(bytes.get(..length)?).ok()?;
    let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse().ok());
    Some(Counters { ran: numbers.next()?, delayed: numbers.next()?, arrivals: numbers.next()?, at: clock::now() })
}

/// Whether the kernel has these counters. Without CONFIG_SCHED_INFO they are zero.
pub(super) fn are_counted() -> bool {
    let own = File::open("/proc/thread-self/schedstat").ok();
    own.and_then(|own| read_counters(&own)).is_some_and(|counters| counters.arrivals > 0)
}

/// Reads the counters of the first thread of a process.
pub(super) fn counters_of(process: Pid) -> Option<Counters> {
    read_counters(&File::open(format!("/proc/{}/schedstat", process.0)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_a_thread_can_be_read() {
        let own = File::open("/proc/thread-self/schedstat").unwrap();
        let counters = read_counters(&own).unwrap();
        assert!(counters.arrivals > 0 && counters.at > Nanos(0), "{counters:?}");
    }
}
