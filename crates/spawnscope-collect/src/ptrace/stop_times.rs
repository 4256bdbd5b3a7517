//! How long the tracer stops each thread: from the moment at which the thread would have continued
//! without the tracer until it continues. This is the work of the tracer, and the time that it
//! takes to stop and to resume a thread (`StopLatency`), half of which passes before the tracer
//! sees the stop. A part of that is CPU time of the thread itself, which is no work of its program.
//! A thread also waits while the tracer handles another one, which takes milliseconds at the first
//! exec of a program. The analysis takes all this off all times. Stops that follow one another
//! closely are reported as one, unless something else about the thread is reported in between.

use spawnscope_data::event::{Event, EventKind, Nanos, Pid, TaskId};
use spawnscope_system::clock;
use spawnscope_system::ids::IdMap;

use super::processes::Thread;
use super::stop_latency::StopLatency;

/// Maximum time between two stops that are reported as one.
const MAX_GAP: Nanos = Nanos(50_000);
/// The handling of a stop is long from this time on. During shorter ones, it does not matter when
/// other threads have stopped.
const LONG: Nanos = Nanos(500_000);
/// An event that the tracer gets within this time was there before.
const AT_ONCE: Nanos = Nanos(5_000);

#[derive(Debug, Default)]
pub(super) struct StopTimes {
    latency: StopLatency,
    /// The CPU time that each thread has used for its stops.
    cpu: IdMap<Pid, Nanos>,
    /// The threads that are stopped, and since when.
    begun: IdMap<Pid, Nanos>,
    /// When each thread was resumed after its last stop, without the latency of that stop.
    resumed: IdMap<Pid, Nanos>,
    /// The last stop of each thread, until it is reported.
    ended: IdMap<TaskId, Event>,
    /// Since when the tracer has been busy with a long stop, and with what happened meanwhile.
    busy_since: Option<Nanos>,
}

impl StopTimes {
    /// `own`: the CPU time of a thread for a stop.
    pub(super) fn new(own: Nanos) -> StopTimes {
        StopTimes { latency: StopLatency::new(own), ..StopTimes::default() }
    }

    /// Returns the CPU time that a thread has used for its stops.
    pub(super) fn cpu_of_stops(&self, tid: Pid) -> Nanos {
        self.cpu.get(&tid).copied().unwrap_or_default()
    }

    /// Returns the CPU time of a process, without that of its stops.
    pub(super) fn cpu_time_of(&self, process: Pid) -> Option<Nanos> {
        Some(clock::cpu_time_of(process)?.since(self.cpu_of_stops(process)))
    }

    /// Notes that the tracer has asked for an event at `asked`, and got it at `seen`.
    pub(super) fn got_event(&mut self, asked: Nanos, seen: Nanos) {
        if seen.since(asked) > AT_ONCE {
            self.busy_since = None;
        }
    }

    /// Notes that the tracer has handled an event that it got at `seen`.
    pub(super) fn handled(&mut self, seen: Nanos, now: Nanos) {
        if now.since(seen) > LONG {
            self.busy_since.get_or_insert(seen);
        }
    }

    /// Returns since when a thread is stopped that the tracer sees stopped at `seen`.
    pub(super) fn begin(&mut self, tid: Pid, seen: Nanos) -> Nanos {
        if let Some(since) = self.begun.get(&tid) {
            return seen.min(*since);
        }
        let resumed = self.resumed.get(&tid).copied();
        if resumed.is_none() {
            self.latency.on_first_stop(tid);
        }
        self.latency.on_stop(tid, seen, LONG);
        let since = self.held_back_since(resumed, seen);
        self.begun.insert(tid, since);
        self.cpu.entry(tid).or_default().0 += self.latency.own().0;
        since.min(seen)
    }

    /// Notes that a stopped thread has run instructions of ours since `at`, as its memory says.
    pub(super) fn begin_earlier(&mut self, tid: Pid, at: Nanos) {
        if let Some((since, resumed)) = self.begun.get_mut(&tid).zip(self.resumed.get(&tid)) {
            let at = at.clamp(*resumed, (*since).max(*resumed));
            self.cpu.entry(tid).or_default().0 += since.since(at).0;
            *since = at.min(*since);
        }
    }

    /// Returns since when something is held back that the tracer sees at `seen`, of a thread that
    /// has been running since `resumed`. This is after `seen` if a stop was quicker than usual.
    fn held_back_since(&self, resumed: Option<Nanos>, seen: Nanos) -> Nanos {
        let usual = seen.since(self.latency.half());
        let since = self.busy_since.filter(|_| resumed.is_some()).map_or(usual, |busy| busy.min(usual));
        since.max(resumed.unwrap_or_default())
    }

    /// Notes that a thread continues. Returns how long it was off its CPU for this stop, and its
    /// stop before, if that must be reported now.
    pub(super) fn end(&mut self, tid: Pid, thread: Thread, at: Nanos) -> Option<(Nanos, Option<Event>)> {
        let since = self.begun.remove(&tid)?;
        self.latency.on_resumed(tid, at);
        let until = Nanos(at.0 + self.latency.half().0);
        self.resumed.insert(tid, until);
        let span = until.since(since);
        let off = span.since(self.latency.own());
        if let Some(last) = self.ended.get_mut(&thread.task)
            && since.since(last.at) <= MAX_GAP
        {
            last.at.0 += span.0;
            return Some((off, None));
        }
        let stop = Event { at: until, launch: thread.launch, task: thread.task, kind: EventKind::Stopped { since } };
        Some((off, self.ended.insert(thread.task, stop)))
    }

    /// Returns how long the last stop of a thread was, unless it has been reported.
    pub(super) fn last_span(&self, task: TaskId) -> Option<Nanos> {
        self.ended.get(&task).and_then(|stop| match stop.kind {
            EventKind::Stopped { since } => Some(stop.at.since(since)),
            _ => None,
        })
    }

    /// Moves the first stop of a process to the time at which it would have got a CPU.
    pub(super) fn move_first(&mut self, task: TaskId, to: Nanos) {
        if let Some(Event { at, kind: EventKind::Stopped { since }, .. }) = self.ended.get_mut(&task) {
            (*at, *since) = (Nanos(to.0 + at.since(*since).0), to);
        }
    }

    /// Returns the last stop of a thread, about which something else is reported.
    pub(super) fn take(&mut self, task: TaskId) -> Option<Event> {
        self.ended.remove(&task)
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Event> + use<> {
        std::mem::take(&mut self.ended).into_values()
    }

    /// Forgets a thread that has ended or is no longer traced. Returns since when its end has been
    /// held back if the tracer sees it at `seen`.
    pub(super) fn forget(&mut self, tid: Pid, seen: Nanos) -> Nanos {
        self.begun.remove(&tid);
        self.cpu.remove(&tid);
        self.latency.forget(tid);
        let resumed = self.resumed.remove(&tid);
        self.held_back_since(resumed, seen).min(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spawnscope_data::event::LaunchId;

    #[test]
    fn a_stop_includes_its_latency_and_close_ones_are_added() {
        let mut times = StopTimes::default();
        times.latency.add(Nanos(10_000));
        let thread = Thread::new(LaunchId(3), TaskId(4));
        let mut stop = |seen, resumed| {
            times.begin(Pid(7), Nanos(seen));
            times.end(Pid(7), thread, Nanos(resumed)).map(|(span, earlier)| (span.0, earlier.map(|event| event.at.0)))
        };
        assert_eq!(stop(100_000, 130_000), Some((40_000, None)));
        assert_eq!(stop(160_000, 170_000), Some((20_000, None)));
        assert_eq!(stop(171_000, 172_000), Some((2_000, None)), "seen before its latency has passed");
        assert_eq!(stop(900_000, 900_000), Some((10_000, Some(157_000))), "too late to be added");
        times.move_first(TaskId(4), Nanos(800_000));
        let last = times.take(TaskId(4)).map(|event| (event.at, event.kind));
        assert_eq!(last, Some((Nanos(810_000), EventKind::Stopped { since: Nanos(800_000) })));
    }

    #[test]
    fn a_stop_includes_the_cpu_time_that_it_takes_of_the_thread() {
        let mut times = StopTimes::new(Nanos(6_000));
        let thread = Thread::new(LaunchId(3), TaskId(4));
        assert_eq!(times.begin(Pid(7), Nanos(100_000)), Nanos(97_000));
        assert_eq!(times.end(Pid(7), thread, Nanos(130_000)), Some((Nanos(30_000), None)));
        times.begin(Pid(7), Nanos(900_000));
        times.begin_earlier(Pid(7), Nanos(890_000));
        assert_eq!(times.cpu_of_stops(Pid(7)), Nanos(6_000 + 6_000 + 7_000), "it worked for the second stop");
        times.begin_earlier(Pid(7), Nanos(u64::MAX));
        times.end(Pid(7), thread, Nanos(900_000));
        let last = times.take(TaskId(4)).map(|event| (event.at, event.kind));
        assert_eq!(last, Some((Nanos(903_000), EventKind::Stopped { since: Nanos(890_000) })));
        times.begin(Pid(7), Nanos(950_000));
        times.begin_earlier(Pid(7), Nanos(0));
        assert_eq!(times.begun[&Pid(7)], Nanos(903_000), "not before it was resumed");
    }

    #[test]
    fn a_thread_waits_while_the_tracer_is_busy_with_another_one() {
        let mut times = StopTimes::default();
        let thread = Thread::new(LaunchId(3), TaskId(4));
        let resume = |times: &mut StopTimes, tid, at| {
            times.begin(Pid(tid), Nanos(at));
            times.end(Pid(tid), thread, Nanos(at));
        };
        resume(&mut times, 7, 100_000);
        times.handled(Nanos(200_000), Nanos(9_000_000));
        resume(&mut times, 8, 5_000_000);
        times.got_event(Nanos(9_000_000), Nanos(9_001_000));
        assert_eq!(times.begin(Pid(7), Nanos(9_001_000)), Nanos(200_000));
        assert_eq!(times.forget(Pid(8), Nanos(9_002_000)), Nanos(5_000_000));
        resume(&mut times, 7, 9_003_000);
        times.got_event(Nanos(9_004_000), Nanos(9_040_000));
        assert_eq!(times.begin(Pid(7), Nanos(9_040_000)), Nanos(9_040_000), "the tracer has waited for it");
    }
}
