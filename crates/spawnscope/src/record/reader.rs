//! Takes rows out of a recording, as plain data. It trusts nothing in the file: what no recorder writes is an error that
//! names table and column, and rows that are not those that were recorded are found by their checksums. The row types are in
//! `rows`.

mod snapshot;
mod take;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::snapshot::Snapshot;
use super::error::RecordError;
use super::open::{self, Opened};
use super::store::LOCK_PATIENCE;

pub use super::contradictions::{Contradiction, Contradictions};
pub use super::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, Info, LaunchRow, ObjectRef, ObjectRow, Origin, Recording, SampleRow,
    Scope, SliceRow, StackId, StackRow, TextId, Texts, ThreadRow, WakerRow,
};

/// A recording that is open for reading. It may still be growing: each read gives what is complete by then.
pub struct RecordingFile {
    opened: Opened,
    path: PathBuf,
}

impl RecordingFile {
    /// Opens a recording. That of a killed recorder is read up to its last batch. Nothing is written, neither to the file nor
    /// beside it.
    ///
    /// # Errors
    /// `Missing`, `NotARecording`, `NewerVersion`, `Corrupt`, `Locked`, `NeedsRepair` and others.
    pub fn open(path: &Path) -> Result<RecordingFile, RecordError> {
        RecordingFile::open_within(path, LOCK_PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> Result<RecordingFile, RecordError> {
        Ok(RecordingFile {
            opened: open::open(path, patience)?,
            path: path.to_owned(),
        })
    }

    /// Opens the same recording once more, for another thread.
    ///
    /// # Errors
    /// As `open`.
    pub fn again(&self) -> Result<RecordingFile, RecordError> {
        Ok(RecordingFile {
            opened: self.opened.again(&self.path, LOCK_PATIENCE)?,
            path: self.path.clone(),
        })
    }

    /// Everything but slices, samples and threads, as of one instant.
    ///
    /// # Errors
    /// `Corrupt` or `BadValue` when the file is damaged, `Locked` when another program holds it.
    pub fn read(&self) -> Result<Recording, RecordError> {
        Snapshot::of(self)?.recording()
    }

    /// Threads other than the first of their process, in order of creation.
    ///
    /// # Errors
    /// As `read`.
    pub fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        Snapshot::of(self)?.threads()
    }

    /// Calls `take` with each slice in the order they were recorded, which is nearly that of time. Their texts and
    /// objects are those of `read`. Gives back what contradicts the rest of the recording.
    ///
    /// # Errors
    /// As `read`.
    pub fn slices(&self, take: &mut dyn FnMut(SliceRow)) -> Result<Contradictions, RecordError> {
        Snapshot::of(self)?.slices(take)
    }

    /// Calls `take` with each sample, in no order. Their stacks are those of `read`. Gives back what contradicts the rest.
    ///
    /// # Errors
    /// As `read`.
    pub fn samples(&self, take: &mut dyn FnMut(SampleRow)) -> Result<Contradictions, RecordError> {
        Snapshot::of(self)?.samples(take)
    }
}

#[cfg(test)]
mod tests;
