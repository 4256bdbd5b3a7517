//! What the caller provides when a recording begins and when it ends, how it is written, and the
//! files that it then consists of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use spawnscope_data::event::{Calibration, Loss, Missing, Nanos};
use spawnscope_data::rows::{Label, Scope};
use spawnscope_system::owner::Owner;

#[derive(Clone, Debug, Default)]
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

/// How a recording is written.
#[derive(Clone, Debug, Default)]
pub struct WriterOptions {
    /// The owner of the recording; `None` means the recorder's own user.
    pub owner: Option<Owner>,
    pub memory: Memory,
    /// Whether the processes ran elsewhere, so that no file of this machine says anything about
    /// them.
    pub is_elsewhere: bool,
}

/// How much memory the writer may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Memory {
    /// Enough to keep a batch out of the log until it is complete, and many events while another
    /// program holds the lock.
    #[default]
    Plenty,
    /// As little as possible.
    Scarce,
}

impl Memory {
    pub(super) fn cache_kib(self) -> i32 {
        match self {
            Memory::Plenty => 16 * 1024,
            Memory::Scarce => 1024,
        }
    }

    /// Returns the maximum number of events to keep while another program holds the write lock.
    pub(super) fn max_unwritten_events(self, batch_events: usize) -> usize {
        match self {
            _ if cfg!(test) => 2 * batch_events,
            Memory::Plenty => 25 * batch_events,
            Memory::Scarce => batch_events,
        }
    }

    /// Returns how many bytes the writer needs as long as no lock delays it.
    pub fn bytes(self) -> u64 {
        const BATCH_BYTES: u64 = 10 << 20;
        BATCH_BYTES + (u64::from(self.cache_kib().unsigned_abs()) << 10)
    }
}
