//! Reads the rows of a recording as plain data. It trusts nothing in the file: a value that no recorder writes is an error that names the
//! table and the column, and checksums reveal changed rows. The row types are in `rows`.

mod snapshot;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::snapshot::Snapshot;
use super::error::RecordError;
use super::open::{self, Opened};
use super::store::LOCK_TIMEOUT;

pub use spawnscope_data::contradictions::{Contradiction, Contradictions};
pub use spawnscope_data::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, Info, Label, LaunchRow, ObjectRef, ObjectRow, Origin, Recording,
    SampleRow, Scope, SliceRow, StackId, StackRow, TextId, Texts, ThreadRow, WakerRow,
};

/// A recording that is open for reading. It may still be growing: each read returns what is complete at that time.
pub struct RecordingFile {
    opened: Opened,
    path: PathBuf,
}

impl RecordingFile {
    /// Opens a recording. A recording whose recorder was killed is readable up to its last batch. Nothing is written to the file or beside
    /// it.
    ///
    /// # Errors
    /// `Missing`, `NotARecording`, `NewerVersion`, `Corrupt`, `Locked`, `NeedsRepair` and others.
    pub fn open(path: &Path) -> Result<RecordingFile, RecordError> {
        RecordingFile::open_within(path, LOCK_TIMEOUT)
    }

    fn open_within(path: &Path, timeout: Duration) -> Result<RecordingFile, RecordError> {
        Ok(RecordingFile {
            opened: open::open(path, timeout)?,
            path: path.to_owned(),
        })
    }

    /// Opens the same recording again, for another thread.
    ///
    /// # Errors
    /// As for `open`.
    pub fn reopen(&self) -> Result<RecordingFile, RecordError> {
        Ok(RecordingFile {
            opened: self.opened.reopen(&self.path, LOCK_TIMEOUT)?,
            path: self.path.clone(),
        })
    }

    /// Reads what was recorded, without its rows.
    ///
    /// # Errors
    /// As for `read`.
    pub fn info(&self) -> Result<Info, RecordError> {
        Snapshot::of(self)?.info()
    }

    /// Returns the name of each table, its number of rows and its checksum: equal contents have equal sums, wherever SQLite keeps them.
    /// They are computed if the recording has none.
    ///
    /// # Errors
    /// As for `read`.
    pub fn sums(&self) -> Result<Vec<(String, u64, u64)>, RecordError> {
        Snapshot::of(self)?.contents()
    }

    /// Reads everything except slices, samples and threads, as of one instant.
    ///
    /// # Errors
    /// `Corrupt` or `BadValue` if the file is damaged, `Locked` if another program holds it.
    pub fn read(&self) -> Result<Recording, RecordError> {
        Snapshot::of(self)?.recording()
    }

    /// Reads the threads other than the first of each process, in order of creation.
    ///
    /// # Errors
    /// As for `read`.
    pub fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        Snapshot::of(self)?.threads()
    }

    /// Calls `take` with each slice in recorded order, which is nearly the order of time. Their texts and objects are those of `read`.
    /// Returns contradictions with the rest of the recording.
    ///
    /// # Errors
    /// As for `read`.
    pub fn slices(&self, take: &mut dyn FnMut(SliceRow)) -> Result<Contradictions, RecordError> {
        Snapshot::of(self)?.slices(take)
    }

    /// Calls `take` with each sample, in no particular order. Their stacks are those of `read`. Returns contradictions with the rest of the
    /// recording.
    ///
    /// # Errors
    /// As for `read`.
    pub fn samples(&self, take: &mut dyn FnMut(SampleRow)) -> Result<Contradictions, RecordError> {
        Snapshot::of(self)?.samples(take)
    }
}

#[cfg(test)]
mod tests;
