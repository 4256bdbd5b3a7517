//! Tracks when a thread is on a CPU and how much CPU time it has used, from the records of its context switches.

use spawnscope_data::event::{LeftCpu, Nanos, Slice};

/// Whether a thread is on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// There is no record of a context switch yet.
    Unseen,
    On {
        since: Nanos,
    },
    Off {
        /// When the preceding stretch on a CPU began, if there was one and its beginning was observed.
        on: Option<Nanos>,
        since: Nanos,
        reason: LeftCpu,
    },
}

/// A thread's time on CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuTime {
    state: State,
    /// CPU time of the completed stretches; `None` after a lost record.
    used: Option<Nanos>,
}

impl CpuTime {
    /// Returns the state of the held command, which was not observed before.
    pub(super) fn unseen() -> CpuTime {
        CpuTime { state: State::Unseen, used: Some(Nanos(0)) }
    }

    /// Returns the state of a thread whose creation record was lost.
    pub(super) fn lost() -> CpuTime {
        CpuTime { used: None, ..CpuTime::unseen() }
    }

    /// Returns the state of a new thread.
    pub(super) fn created(at: Nanos) -> CpuTime {
        CpuTime { state: State::Off { on: None, since: at, reason: LeftCpu::Created }, used: Some(Nanos(0)) }
    }

    /// Whether the thread has not been on a CPU yet.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.state, State::Off { reason: LeftCpu::Created, .. })
    }

    /// Call when the thread has got a CPU. Returns the slice that ends at this moment.
    pub(super) fn got_cpu(&mut self, at: Nanos) -> Option<Slice> {
        let before = std::mem::replace(&mut self.state, State::On { since: at });
        match before {
            State::Unseen => None,
            State::On { .. } => {
                self.used = None;
                None
            }
            State::Off { on, since, reason } => Some(Slice { on, ..Slice::new(since, reason) }),
        }
    }

    /// Call when the thread has left its CPU. The record says whether the thread was preempted, but not how it sleeps.
    pub(super) fn left_cpu(&mut self, at: Nanos, is_preempted: bool) {
        let reason = if is_preempted { LeftCpu::Preempted } else { LeftCpu::Interruptible };
        self.state = State::Off { on: self.stop(at), since: at, reason };
    }

    /// Call when the thread has ended. Returns its last slice.
    pub(super) fn ended(&mut self, at: Nanos) -> Slice {
        let on = self.stop(at);
        self.state = State::Off { on, since: at, reason: LeftCpu::Ended };
        Slice { on, ..Slice::new(at, LeftCpu::Ended) }
    }

    /// Ends a stretch on a CPU, and returns its beginning.
    fn stop(&mut self, at: Nanos) -> Option<Nanos> {
        match self.state {
            State::On { since } => {
                self.used = self.used.map(|used| Nanos(used.0 + at.since(since).0));
                Some(since)
            }
            // Until now, the process ran only the recorder's own code.
            State::Unseen => None,
            State::Off { .. } => {
                self.used = None;
                None
            }
        }
    }

    /// Returns the CPU time that the thread has used up to this moment, if it is known.
    pub(super) fn used_until(&self, at: Nanos) -> Option<Nanos> {
        let current = match self.state {
            State::On { since } => at.since(since).0,
            State::Unseen | State::Off { .. } => 0,
        };
        self.used.map(|used| Nanos(used.0 + current))
    }

    /// Returns what the thread is doing at the end of the recording, as an unfinished slice.
    pub(super) fn last_seen(&self, end: Nanos) -> Option<Slice> {
        match self.state {
            State::Unseen => None,
            State::On { since } => Some(Slice { on: Some(since), ..Slice::new(end, LeftCpu::Preempted) }),
            State::Off { on, since, reason } => Some(Slice { on, ..Slice::new(since, reason) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u64) -> Nanos {
        Nanos(number)
    }

    #[test]
    fn each_stretch_becomes_a_slice_and_its_time_is_added_up() {
        let mut thread = CpuTime::created(at(10));
        assert!(thread.is_new());
        let first = thread.got_cpu(at(12)).unwrap();
        assert_eq!((first.on, first.off, first.reason), (None, at(10), LeftCpu::Created));
        assert!(!thread.is_new());
        assert_eq!(thread.used_until(at(15)), Some(at(3)));
        thread.left_cpu(at(20), true);
        assert_eq!(thread.used_until(at(90)), Some(at(8)));
        let second = thread.got_cpu(at(25)).unwrap();
        assert_eq!((second.on, second.off, second.reason), (Some(at(12)), at(20), LeftCpu::Preempted));
        thread.left_cpu(at(26), false);
        assert_eq!(thread.last_seen(at(99)).unwrap().reason, LeftCpu::Interruptible);
        thread.got_cpu(at(30));
        assert_eq!(thread.last_seen(at(99)).unwrap().off, at(99));
        let last = thread.ended(at(31));
        assert_eq!((last.on, last.off, last.reason), (Some(at(30)), at(31), LeftCpu::Ended));
        assert_eq!(thread.used_until(at(99)), Some(at(8 + 1 + 1)));
    }

    #[test]
    fn after_a_lost_record_the_cpu_time_is_unknown_but_slices_are_still_reported() {
        let mut thread = CpuTime::created(at(0));
        thread.got_cpu(at(1));
        assert_eq!(thread.got_cpu(at(5)), None, "the record of leaving was lost");
        assert_eq!(thread.used_until(at(6)), None);
        thread.left_cpu(at(6), false);
        assert!(thread.got_cpu(at(8)).is_some());
        let mut other = CpuTime::created(at(0));
        other.left_cpu(at(4), false);
        assert_eq!(other.used_until(at(4)), None, "the record of getting a CPU was lost");
        let mut held = CpuTime::unseen();
        assert_eq!(held.got_cpu(at(3)), None);
        assert_eq!(held.used_until(at(5)), Some(at(2)));
    }
}
