//! The replay: what the recorded threads did, played again on simulated CPUs. Played unchanged it has to give the measured
//! wall; the difference is the model's error. `write` turns slices into what each thread does, each thing at its `place` in
//! the life of a launch; `simulate` plays it.

mod contention;
mod history;
mod losers;
pub mod place;
pub mod program;
pub mod simulate;
mod write;

pub(in crate::analyze) use contention::runnable;

use super::critical_path::CriticalPath;
use super::timeline::{Timelines, root_of};
use super::tree::Forest;
use crate::event::{Constant, Nanos};
use crate::record::reader::Recording;
use history::History;
use program::Programs;
use simulate::{Machine, play, simulate};

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
}

impl Setting {
    /// Of a recording; `None` for one that has not ended.
    #[must_use]
    pub fn of(recording: &Recording) -> Option<Setting> {
        let faults = recording
            .calibration
            .iter()
            .filter(|row| row.what == Constant::ReuseFault);
        Some(Setting {
            cpus: recording.info.cpus,
            wall: recording.info.wall?,
            fault: faults.map(|row| row.ns).next().unwrap_or_default(),
        })
    }
}

impl Replay {
    /// Prepares a recording and plays it once; `None` without a command, whose end is the wall's.
    #[must_use]
    pub fn new(forest: &Forest<'_>, timelines: &Timelines, setting: &Setting) -> Option<Replay> {
        let root = root_of(forest)?;
        let start = forest.launches[root as usize].instants.created.unwrap_or_default();
        let window = (start, Nanos(start.0 + setting.wall.0));
        let programs = write::write(forest, timelines, setting, root, window);
        Some(Replay {
            unchanged: simulate(&programs, &Machine::with_cpus(setting.cpus)),
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
pub fn critical_path_of(programs: &Programs, cpus: u32, launches: usize) -> CriticalPath {
    let mut history = History::of_threads(programs.steps.len());
    let end = play(programs, &Machine::with_cpus(cpus), &mut history);
    history.critical_path(launches, &programs.launch_of, programs.last, end)
}
