//! How long tracing delays the command. Each stop costs the latency of stopping and resuming (`stop_latency`), and work of the tracer, which is
//! the CPU time of its thread. Both are converted to what recording adds to each launch and to each exec, which predictions subtract, and to what
//! a stop adds, which is taken off the phases.

use spawnscope_data::event::{Calibration, Constant, Nanos};
use spawnscope_system::ptrace::Stop;

/// The stops so far, and what they have cost.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// What a stop costs besides the work of the tracer, if it could be measured.
    latency: Nanos,
    /// Launches, and all stops that do not belong to execs.
    launches: Counts,
    /// Execs, and the stops in their detours, at their end and at the end of their loaders.
    execs: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    events: u64,
    stops: u64,
}

impl Costs {
    pub(super) fn new(latency: Option<Nanos>) -> Costs {
        Costs { latency: latency.unwrap_or_default(), ..Costs::default() }
    }

    pub(super) fn add(&mut self, stop: Stop) {
        let counts = match stop {
            Stop::Exec { .. } | Stop::Signal(libc::SIGURG) => &mut self.execs,
            _ => &mut self.launches,
        };
        counts.stops += 1;
        counts.events += u64::from(matches!(stop, Stop::Exec { .. } | Stop::Created { .. }));
    }

    /// Returns what tracing has added to each launch and to each exec. `work` is the CPU time of the tracer at all stops.
    pub(super) fn constants(&self, work: Nanos) -> Vec<Calibration> {
        let stops = self.launches.stops + self.execs.stops;
        let per_stop = self.latency.0 as f64 + work.0 as f64 / stops.max(1) as f64;
        let counts = [(Constant::RecordedLaunch, self.launches), (Constant::RecordedExec, self.execs)];
        let known = counts.into_iter().filter(|(_, counts)| counts.events > 0);
        let costs = known.map(|(what, counts)| (what, per_stop * counts.stops as f64 / counts.events as f64));
        let stop = (stops > 0).then_some((Constant::RecordedStop, per_stop));
        costs.chain(stop).map(|(what, ns)| Calibration { what, ns, low_ns: None, high_ns: None }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spawnscope_data::event::Pid;
    use spawnscope_system::ptrace::Creation;

    #[test]
    fn the_cost_of_stops_is_divided_by_launches_and_execs() {
        let mut costs = Costs::new(Some(Nanos(5_000)));
        assert_eq!(costs.constants(Nanos(0)), []);
        let created = Stop::Created { how: Creation::Fork, child: Some(Pid(7)) };
        for stop in [created, created, Stop::Interrupted, Stop::Interrupted, Stop::Exec { former_thread: None }] {
            costs.add(stop);
        }
        costs.add(Stop::Signal(libc::SIGURG));
        let found: Vec<_> = costs.constants(Nanos(6_000)).iter().map(|row| (row.what, row.ns)).collect();
        assert_eq!(
            found,
            [
                (Constant::RecordedLaunch, 12_000.0),
                (Constant::RecordedExec, 12_000.0),
                (Constant::RecordedStop, 6_000.0)
            ]
        );
    }
}
