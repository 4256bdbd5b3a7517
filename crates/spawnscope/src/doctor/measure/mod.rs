//! What the doctor measures, before anything else runs: what a launch costs (`launch`), whether fresh files are scanned
//! (`scan`), and single steps (`steps`). Launches are made by a small process (`small`) of static and dynamic programs (`image`) in a
//! folder of ours (`folder`). What cannot be measured, or takes too long, is unknown.

mod folder;
mod image;
mod launch;
mod scan;
mod small;
mod steps;

use std::path::PathBuf;

pub use self::launch::LaunchCost;
pub use self::scan::Scan;
use super::machine::Machine;
use super::mounts;
use crate::collect::calibrate::Calibrator;
use crate::event::{Calibration, Constant, Nanos};

/// The figures.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// What a launch costs.
    pub launch: LaunchCost,
    /// An exec of a dynamically linked program without the variables of the dynamic loader, where any is set.
    pub without_loader_variables: Option<Nanos>,
    /// First and later launches of fresh files.
    pub scan: Option<Scan>,
    /// Constants of forks, and of the CPUID instruction.
    pub constants: Vec<Calibration>,
    /// A system call that does nothing.
    pub system_call: Option<Nanos>,
    /// A look-up that finds nothing, in each directory of PATH that exists; unknown where it took too long.
    pub lookups: Vec<(PathBuf, Option<Nanos>)>,
    /// A move of a process to the control group that it is in.
    pub migration: Option<Nanos>,
}

impl Measured {
    /// Measures this machine, in about 0.3 s; 3 s where launches are slow.
    #[must_use]
    pub fn take(machine: &Machine) -> Measured {
        let constants = Calibrator::start().map(Calibrator::finish).unwrap_or_default();
        let mounts = mounts::all(machine);
        let folder = folder::Folder::make(machine, &mounts);
        let launch = launch::measure(machine, folder.as_ref());
        Measured {
            without_loader_variables: launch::without_loader_variables(machine),
            scan: folder.as_ref().and_then(scan::measure),
            system_call: steps::system_call(),
            lookups: steps::lookups(machine),
            migration: steps::migration(machine),
            launch,
            constants,
        }
    }

    /// A constant's median, in nanoseconds.
    #[must_use]
    pub fn constant(&self, what: Constant) -> Option<f64> {
        let constant = self.constants.iter().find(|constant| constant.what == what)?;
        Some(constant.ns)
    }
}

/// The middle one.
fn median(mut values: Vec<Nanos>) -> Option<Nanos> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
