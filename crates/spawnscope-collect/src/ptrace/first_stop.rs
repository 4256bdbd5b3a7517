//! When a new process would have got a CPU without the tracer, which stops it and its creator.

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use spawnscope_data::event::{Nanos, Pid};

use super::counters::{Counters, counters_of, open_schedstat, read_counters};

/// The recorder has few open files if a new one gets a descriptor below this.
pub(super) const FEW_FILES: RawFd = 256;

/// The first stop of a new process. The process has waited for a CPU until this stop, and waits
/// again when it is resumed, since its creator, which was stopped too, may have got the only CPU.
/// Without the tracer, both would be a single wait.
#[derive(Debug)]
pub(super) struct FirstStop {
    /// When the process was created: no later than its creator's stop, which follows the creation.
    pub(super) created: Nanos,
    /// How long it was in the run queue until the stop.
    waited: Nanos,
    /// The file with its counters, if few files are open: a process that never stops again would
    /// keep it.
    pub(super) schedstat: Option<File>,
}

impl FirstStop {
    /// Reads the counters of a process at its first stop, before it is resumed. `creator_stopped`:
    /// when its creator stopped.
    pub(super) fn read(process: Pid, creator_stopped: Option<Nanos>) -> Option<FirstStop> {
        let schedstat = open_schedstat(process)?;
        let counters = read_counters(&schedstat)?;
        Some(FirstStop {
            created: creation_time(&counters, creator_stopped),
            waited: Nanos(counters.delayed),
            schedstat: (schedstat.as_raw_fd() < FEW_FILES).then_some(schedstat),
        })
    }

    /// Returns when the process would have got a CPU if it had not waited for one again after this
    /// stop.
    pub(super) fn begun(&self) -> Nanos {
        Nanos(self.created.0 + self.waited.0)
    }

    /// Returns when the process would have got a CPU without the tracer. It must be at its second
    /// stop. `at_first_call`: this stop is its first system call. In that case, all its time in the
    /// run queue counts, since its creator, which is resumed after it, may have preempted it.
    /// Otherwise returns `None` if it was in the run queue more than once.
    pub(super) fn first_run(&self, process: Pid, at_first_call: bool) -> Option<Nanos> {
        self.first_run_from(&counters_of(process, self.schedstat.as_ref())?, at_first_call)
    }

    fn first_run_from(&self, now: &Counters, at_first_call: bool) -> Option<Nanos> {
        let waited = now.delayed.checked_sub(self.waited.0)?;
        (at_first_call || now.arrivals == 2).then_some(Nanos(self.created.0 + self.waited.0 + waited))
    }
}

fn creation_time(at_first_stop: &Counters, creator_stopped: Option<Nanos>) -> Nanos {
    let waiting_since = Nanos(at_first_stop.at.0.saturating_sub(at_first_stop.delayed));
    creator_stopped.map_or(waiting_since, |stopped| stopped.min(waiting_since))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(at: u64, ran: u64, delayed: u64, arrivals: u64) -> Counters {
        Counters { at: Nanos(at), ran, delayed, arrivals }
    }

    #[test]
    fn the_first_run_follows_the_waits_before_and_after_the_first_stop() {
        let at_first_stop = counters(5_000_000, 20_000, 200_000, 1);
        // The creator's stop may be noticed before or after that of the process.
        for (creator_stopped, created) in
            [(None, 4_800_000), (Some(4_300_000), 4_300_000), (Some(4_900_000), 4_800_000)]
        {
            assert_eq!(creation_time(&at_first_stop, creator_stopped.map(Nanos)), Nanos(created));
        }
        let first = FirstStop { created: Nanos(4_800_000), waited: Nanos(200_000), schedstat: None };
        let second = counters(9_000_000, 30_000, 1_200_000, 2);
        assert_eq!(first.first_run_from(&second, false), Some(Nanos(6_000_000)));
        let preempted = counters(9_000_000, 30_000, 1_200_000, 3);
        assert_eq!(first.first_run_from(&preempted, false), None);
        assert_eq!(first.first_run_from(&preempted, true), Some(Nanos(6_000_000)));
    }
}
