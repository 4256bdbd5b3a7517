//! What the caller provides when a recording begins and when it ends, and the files that it then
//! consists of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use spawnscope_data::event::{Calibration, Loss, Missing, Nanos};
use spawnscope_data::rows::{Label, Scope};

#[derive(Clone, Debug)]
pub struct Header {
    /// The name of the collector, such as `ebpf`.
    pub collector: String,
    pub scope: Scope,
    /// The command's argv; empty if there is no command. Secrets in it are masked when it is
    /// written.
    pub command: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub arch: String,
    /// `uname -n`.
    pub hostname: String,
    /// Labels that say what the recording is about, at most `Label::MAX_COUNT`, with different
    /// keys. Secrets in values are masked when they are written.
    pub labels: Vec<Label>,
    pub cpus: u32,
    /// The number of CPUs that the command may use, if known. A quota allows fractions.
    pub allowed_cpus: Option<f64>,
    /// The wall-clock time at `origin`, in nanoseconds since 1970-01-01 UTC.
    pub started_unix_ns: i64,
    /// The instant that becomes the recording's time zero.
    pub origin: Nanos,
    /// What the collector cannot see on this machine.
    pub missing: Vec<Missing>,
    /// Constants of the machine that could be measured.
    pub calibration: Vec<Calibration>,
}

#[derive(Clone, Debug)]
pub struct Ending {
    /// The time from the start to the end of the command, or to the end of the recording.
    pub wall: Option<Nanos>,
    /// Why the recording ended: `exited`, `interrupted`, `duration` or `failed: WHY`.
    pub ended: String,
    /// The number of CPUs that the command was allowed to use at its end. `None` if the number in
    /// the header is not to be replaced.
    pub allowed_cpus: Option<f64>,
    pub lost: Vec<Loss>,
    /// Constants that are known at the end, in addition to those of the header.
    pub calibration: Vec<Calibration>,
}

impl Ending {
    /// Returns the sum of lost events for each kind, because a collector may report one kind
    /// several times.
    pub(super) fn losses(&self) -> Vec<Loss> {
        let mut losses = BTreeMap::new();
        for loss in &self.lost {
            let events: &mut u64 = losses.entry(&loss.kind).or_default();
            *events = events.saturating_add(loss.events);
        }
        losses.into_iter().map(|(kind, events)| Loss { kind: kind.clone(), events }).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishedFiles {
    Whole,
    /// Two files, because another program still reads the recording. This write-ahead log is part
    /// of the recording until that program closes it.
    WithLog(PathBuf),
}
