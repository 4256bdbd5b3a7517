//! The replay: what the recorded threads did, played again on simulated CPUs. Played unchanged it has to give the measured
//! wall; the difference is the model's error. `write` turns slices into what each thread does, each thing at its `activity` in
//! the life of a launch; `simulate` plays it.

pub mod activity;
mod contention;
mod delayed;
mod history;
mod packed;
pub mod program;
pub mod simulate;
mod write;

pub(in crate::analyze) use contention::runnable;

use super::critical_path::CriticalPath;
use super::timeline::{Timelines, root_of};
use super::tree::Forest;
use crate::event::{Constant, Nanos};
use crate::parallel;
use crate::record::reader::Recording;
use history::History;
use program::{Programs, Script};
use simulate::{Machine, play, simulate};

/// A replay that misses more than this share of the wall says nothing about it: what the recording does not hold is larger than
/// what it holds.
const MOST_ERROR: f64 = 0.5;

/// Whether causes and predictions may rest on a replay that misses the wall by that share of it.
#[must_use]
pub fn is_believable(error: f64) -> bool {
    error.abs() < MOST_ERROR
}

/// Why not, in words without a full stop.
#[must_use]
pub fn unbelievable(error: f64) -> String {
    let percent = 100.0 * error;
    format!("the replay misses the wall by {percent:+.1} %: the recording holds too little of it")
}

/// A recording made ready to be played.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What each thread does.
    pub programs: Programs,
    /// CPUs of the recording.
    pub cpus: u32,
    /// The wall as it was measured.
    pub measured: Nanos,
    /// The wall that the unchanged replay gives.
    pub unchanged: Nanos,
    /// The same without what recording took.
    pub unrecorded: Nanos,
}

/// What a recording was made on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// CPUs.
    pub cpus: u32,
    /// From the command's beginning to its end.
    pub wall: Nanos,
    /// Nanoseconds of a parent's page fault after a fork; 0 where that is not known.
    pub fault: f64,
    /// Nanoseconds by which recording makes a system call longer; 0 where that is not known.
    pub call: f64,
}

impl Setting {
    /// Of a recording; `None` for one that has not ended.
    #[must_use]
    pub fn of(recording: &Recording) -> Option<Setting> {
        let known = |what: Constant| recording.calibration.iter().find(|row| row.what == what);
        let nanos = |what: Constant| known(what).map(|row| row.ns).unwrap_or_default();
        Some(Setting {
            cpus: recording.info.cpus,
            wall: recording.info.wall?,
            fault: nanos(Constant::ReuseFault),
            call: nanos(Constant::RecordedCall),
        })
    }
}

impl Replay {
    /// Prepares a recording and plays it once; `None` without a command, whose end is the wall's.
    #[must_use]
    pub fn new(forest: &Forest<'_>, timelines: &Timelines, setting: &Setting) -> Option<Replay> {
        let root = root_of(forest)?;
        let start = forest.launches[root as usize]
            .instants
            .created
            .get()
            .unwrap_or_default();
        let window = (start, Nanos(start.0 + setting.wall.0));
        let programs = write::write(forest, timelines, setting, root, window);
        let machine = Machine::with_cpus(setting.cpus);
        let is_free = setting.call == 0.0;
        let (unrecorded, unchanged) = parallel::both(
            || (!is_free).then(|| simulate(&programs, &machine.unrecorded())),
            || simulate(&programs, &machine),
        );
        Some(Replay {
            unchanged,
            unrecorded: unrecorded.unwrap_or(unchanged),
            programs,
            cpus: setting.cpus,
            measured: setting.wall,
        })
    }

    /// The wall with another number of CPUs.
    #[must_use]
    pub fn with_cpus(&self, cpus: u32) -> Nanos {
        simulate(&self.programs, &Machine::with_cpus(cpus))
    }

    /// By how much the unchanged replay misses the measured wall, as a share of it: 0.02 is 2 %, too long; negative is too short.
    #[must_use]
    pub fn error(&self) -> f64 {
        let measured = self.measured.0.max(1) as f64;
        (self.unchanged.0 as f64 - measured) / measured
    }
}

/// Plays programs, and says what their critical path is then.
#[must_use]
pub fn critical_path_of(script: impl Script, machine: &Machine, launches: usize) -> CriticalPath {
    let (launch_of, last) = (script.launch_of().to_vec(), script.last());
    let mut history = History::of_threads(launch_of.len());
    let end = play(script, machine, &mut history);
    history.critical_path(launches, &launch_of, last, end)
}
