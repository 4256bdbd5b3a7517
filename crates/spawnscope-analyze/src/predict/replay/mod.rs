//! The replay: simulates the recorded threads on simulated CPUs. A replay without changes must
//! reproduce the measured wall; the difference is the replay error. `write` turns slices into
//! programs, each step of which belongs to an `activity`; `simulate` runs the programs.

mod actions;
pub mod activity;
mod concurrent;
mod contention;
mod delayed;
mod history;
mod launch_overhead;
pub mod machine;
pub mod program;
mod reaps;
pub mod simulate;
pub mod steps;
pub(in crate::predict) mod supervision;
mod turns;
mod watch;
mod write;

pub use contention::CpuWaits;

use crate::model::timeline::{Timelines, root_of};
use crate::model::tree::Forest;
use crate::path::concurrency::most_running;
use crate::path::critical_path::CriticalPath;
use history::History;
use machine::Machine;
use program::{Programs, Script};
use simulate::{simulate, simulate_and_watch};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::parallel;
use spawnscope_data::rows::Recording;

/// Maximum replay error of a reliable replay, as a share of the wall. With a larger error, too much
/// is missing from the recording.
const MAX_ERROR: f64 = 0.5;

/// Maximum overhead of recording per launch or exec that was measured by comparing a few launches,
/// in nanoseconds. The overhead is 5 to 30 us, so a larger measurement was disturbed.
const MAX_OVERHEAD_NS: f64 = 60_000.0;

/// Whether causes and predictions may rely on a replay with this error.
pub fn is_reliable(error: f64) -> bool {
    error.abs() < MAX_ERROR
}

/// Returns the reason why a replay with this error is not reliable, without a full stop.
pub fn unreliable_text(error: f64) -> String {
    let percent = 100.0 * error;
    format!("the replay error is {percent:+.1} %: the recording is too incomplete")
}

#[derive(Clone, Debug)]
pub struct Replay {
    pub programs: Programs,
    pub cpus: u32,
    pub measured: Nanos,
    pub unchanged: Nanos,
    pub unrecorded: Nanos,
    /// The share of the overhead of recording that remains without recording.
    pub remains: f64,
    /// The same two, if the collector's cost is the greatest and the least that it may be. `None`
    /// if it is known well.
    pub ends: Option<[(f64, Nanos); 2]>,
}

/// The parameters of a replay, taken from the recording: the CPUs, the wall, and measured costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    pub cpus: u32,
    /// Whether that number is known. Otherwise, the threads that ran at the same time had a CPU
    /// each.
    pub has_cpus: bool,
    /// The measured wall, from the start of the command to its end.
    pub wall: Nanos,
    /// Duration of a parent's page fault after a fork, in nanoseconds. 0 if unknown.
    pub fault_ns: f64,
    /// Overhead of recording per system call, in nanoseconds. 0 if unknown.
    pub call_ns: f64,
    /// Overhead of recording per launch, in nanoseconds. 0 if unknown.
    pub launch_ns: f64,
    /// Overhead of recording per exec, in nanoseconds. 0 if unknown.
    pub exec_ns: f64,
    /// If these are the greatest that they may be: the shares that remain if they are the likely,
    /// the greatest and the least.
    pub remains: Option<[f64; 3]>,
}

/// Returns the overhead of a launch or exec, or zero if it is unknown or its measurement was
/// disturbed.
fn plausible_or_zero(recording: &Recording, what: Constant) -> f64 {
    let plausible = recording.measured(what).filter(|row| row.ns <= MAX_OVERHEAD_NS);
    plausible.map(|row| row.ns).unwrap_or_default()
}

impl Parameters {
    /// Returns the parameters for a recording. `None` if the recording has not ended.
    pub fn of(recording: &Recording) -> Option<Parameters> {
        // The cost of a tracer that slows launches is not that of a few of them.
        let traced = recording.measured(Constant::RecordedCall).filter(|_| recording.info.slowed_by().is_some());
        let traced = traced.and_then(|row| Some([row.ns, row.high_ns?, row.low_ns?]));
        let greatest = |what| recording.measured(what).and_then(|row| row.high_ns).unwrap_or_default();
        let of_launches = |what| if traced.is_some() { greatest(what) } else { plausible_or_zero(recording, what) };
        let call_ns = || recording.measured_ns(Constant::RecordedCall).unwrap_or_default();
        Some(Parameters {
            cpus: recording.info.usable_cpus(),
            has_cpus: recording.info.cpus > 0,
            wall: recording.info.wall?,
            fault_ns: recording.measured_ns(Constant::ReuseFault).unwrap_or_default(),
            call_ns: traced.map_or_else(call_ns, |[_, high, _]| high),
            launch_ns: of_launches(Constant::RecordedLaunch),
            exec_ns: of_launches(Constant::RecordedExec),
            remains: traced.map(|costs| costs.map(|cost| 1.0 - cost / costs[1].max(1.0))),
        })
    }
}

impl Replay {
    /// Prepares a recording and replays it without changes. `None` without a command, whose end is
    /// the end of the wall.
    pub fn new(forest: &Forest<'_>, timelines: &Timelines, parameters: &Parameters) -> Option<Replay> {
        let root = root_of(forest)?;
        let start = forest.launches[root as usize].instants.created.get().unwrap_or_default();
        let window = (start, Nanos(start.0 + parameters.wall.0));
        let cpus = if parameters.has_cpus { parameters.cpus } else { parameters.cpus.max(most_running(timelines)) };
        let parameters = &Parameters { cpus, ..*parameters };
        let programs = write::write(forest, timelines, parameters, root, window);
        let machine = Machine::with_cpus(parameters.cpus);
        let constants = [parameters.call_ns, parameters.launch_ns, parameters.exec_ns];
        let has_no_overhead = constants == [0.0; 3] && forest.recording().stops.is_empty();
        let unknown = if has_no_overhead { [1.0; 3] } else { [0.0; 3] };
        let [remains, least, most] = parameters.remains.unwrap_or(unknown);
        let with = |remains| (remains, simulate(&programs, &machine.unrecorded(remains)));
        let (unrecorded, unchanged) =
            parallel::join(|| (!has_no_overhead).then(|| with(remains).1), || simulate(&programs, &machine));
        Some(Replay {
            unchanged,
            unrecorded: unrecorded.unwrap_or(unchanged),
            remains,
            ends: parameters.remains.map(|_| [with(least), with(most)]),
            programs,
            cpus: parameters.cpus,
            measured: parameters.wall,
        })
    }

    pub fn with_cpus(&self, cpus: u32) -> Nanos {
        simulate(&self.programs, &Machine::with_cpus(cpus))
    }

    /// Returns the replay error as a share of the measured wall: 0.02 means that the replay is 2 %
    /// too long, a negative value that it is too short.
    pub fn error(&self) -> f64 {
        let measured = self.measured.0.max(1) as f64;
        (self.unchanged.0 as f64 - measured) / measured
    }
}

pub fn critical_path_of(script: impl Script, machine: &Machine, launches: usize) -> CriticalPath {
    let (launch_of, last) = (script.programs().launch_of.clone(), script.programs().last);
    let mut history = History::new(launch_of.len());
    let end = simulate_and_watch(script, machine, &mut history);
    history.critical_path(launches, &launch_of, last, end)
}
