//! What a stop costs a thread beyond the work of the tracer: the time until the tracer and then the
//! thread are awake. Most of it is waking CPUs that sleep, and depends on how long they have slept:
//! the same machine needed 8 us in a regular loop, and 35 us in storms of launches. Therefore it is
//! measured during the recording. If a thread got a CPU only once between two stops, it has not
//! waited in between, and what the scheduler's counters do not show as CPU time is the latency of
//! one stop. Without these counters, it is unknown and counts as nothing. The CPU time that a stop
//! takes of the thread itself is part of the latency, too, and hardly depends on what is recorded.
//! It is measured before.

use std::fs::File;

use spawnscope_data::event::{Nanos, Pid};
use spawnscope_system::ids::IdMap;

use super::counters::{Counters, read_counters};

/// Every eighth thread is measured, because reading the counters takes some microseconds.
const THREADS_PER_MEASURED: u32 = 8;
/// Maximum number of threads that are measured at a time, each through a file that stays open.
const MAX_MEASURED: usize = 16;
/// Number of stops whose moving average is the estimate.
const AVERAGED: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct StopLatency {
    /// The CPU time that a stop takes of the thread.
    own: Nanos,
    /// The rest of the latency.
    mean: f64,
    stops: u32,
    threads: u32,
    measured: IdMap<Pid, Measured>,
}

#[derive(Debug)]
struct Measured {
    schedstat: File,
    /// The counters at the last stop, and when the tracer resumed the thread.
    last: Option<(Counters, Nanos)>,
}

impl StopLatency {
    pub(super) fn new(own: Nanos) -> StopLatency {
        StopLatency { own, ..StopLatency::default() }
    }

    pub(super) fn own(&self) -> Nanos {
        self.own
    }

    /// Returns half of the latency, which passes before the tracer sees a stop.
    pub(super) fn half(&self) -> Nanos {
        Nanos(((self.mean + self.own.0 as f64) / 2.0) as u64)
    }

    /// Notes that a thread has stopped for the first time.
    pub(super) fn on_first_stop(&mut self, tid: Pid) {
        if self.threads.is_multiple_of(THREADS_PER_MEASURED)
            && self.measured.len() < MAX_MEASURED
            && let Ok(schedstat) = File::open(format!("/proc/{}/schedstat", tid.0))
        {
            self.measured.insert(tid, Measured { schedstat, last: None });
        }
        self.threads = self.threads.wrapping_add(1);
    }

    /// Notes that the tracer sees a thread stopped at `seen`. A stop counts as `longest` at most.
    pub(super) fn on_stop(&mut self, tid: Pid, seen: Nanos, longest: Nanos) {
        let Some(measured) = self.measured.get_mut(&tid) else { return };
        let Some(now) = read_counters(&measured.schedstat) else { return };
        let last = measured.last.replace((now, seen));
        let latency = last.and_then(|(before, resumed)| latency_of(before, resumed, now, seen));
        latency.into_iter().for_each(|latency| self.add(latency.min(longest)));
    }

    pub(super) fn add(&mut self, latency: Nanos) {
        self.stops = (self.stops + 1).min(AVERAGED);
        self.mean += (latency.0 as f64 - self.mean) / f64::from(self.stops);
    }

    /// Notes that the tracer resumes a thread.
    pub(super) fn on_resumed(&mut self, tid: Pid, at: Nanos) {
        if let Some((_, resumed)) = self.measured.get_mut(&tid).and_then(|measured| measured.last.as_mut()) {
            *resumed = at;
        }
    }

    pub(super) fn forget(&mut self, tid: Pid) {
        self.measured.remove(&tid);
    }
}

/// Returns the latency of a stop that is seen with the counters `now`, if the thread has not waited
/// since it was resumed at its last stop, with the counters `before`.
fn latency_of(before: Counters, resumed: Nanos, now: Counters, seen: Nanos) -> Option<Nanos> {
    let ran = now.ran.saturating_sub(before.ran);
    (now.arrivals == before.arrivals + 1).then(|| Nanos(seen.since(resumed).0.saturating_sub(ran)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_did_not_run_is_latency_unless_it_waited() {
        let counters = |ran, arrivals| Counters { at: Nanos(0), ran, delayed: 0, arrivals };
        let after =
            |ran, arrivals| latency_of(counters(7_000, 3), Nanos(10_000), counters(ran, arrivals), Nanos(60_000));
        assert_eq!(after(27_000, 4), Some(Nanos(30_000)));
        assert_eq!(after(27_000, 5), None, "it waited, or lost its CPU");
        assert_eq!(after(7_000, 3), None, "it has not run");
    }

    #[test]
    fn the_latency_follows_the_recording() {
        let mut latency = StopLatency::default();
        assert_eq!(latency.half(), Nanos(0), "unknown");
        latency.add(Nanos(8_000));
        assert_eq!(latency.half(), Nanos(4_000), "the first stop counts whole");
        (0..500).for_each(|_| latency.add(Nanos(40_000)));
        assert!(latency.half() > Nanos(19_990), "{latency:?}");
    }
}
