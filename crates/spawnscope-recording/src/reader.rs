//! Reads the rows of a recording as plain data. The reader does not trust the file: a value that no
//! recorder writes is an error that names the table and the column, and checksums reveal changed
//! rows. The row types are in `spawnscope_data::rows`.

mod snapshot;

use std::path::{Path, PathBuf};
use std::time::Duration;

use self::snapshot::Snapshot;
use super::error::RecordError;
use super::open::{self, OpenRecording};
use super::store::LOCK_TIMEOUT;

pub use spawnscope_data::contradictions::{Contradiction, Contradictions};
pub use spawnscope_data::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, Info, Label, LaunchRow, ObjectRef, ObjectRow, Origin, Recording,
    SampleRow, Scope, SliceRow, StackId, StackRow, TextId, Texts, ThreadRow, WakerRow,
};

/// A recording that is open for reading. It may still be growing: each read returns what is
/// complete at that time.
pub struct RecordingFile {
    opened: OpenRecording,
    path: PathBuf,
}

impl RecordingFile {
    /// Opens a recording. A recording whose recorder was killed is readable up to its last batch.
    /// This does not write to the file, and creates no file beside it.
    ///
    /// # Errors
    /// `Missing`, `NotARecording`, `NewerVersion`, `Corrupt`, `Locked`, `NeedsRepair` and others.
    pub fn open(path: &Path) -> Result<RecordingFile, RecordError> {
        RecordingFile::open_within(path, LOCK_TIMEOUT)
    }

    fn open_within(path: &Path, timeout: Duration) -> Result<RecordingFile, RecordError> {
        Ok(RecordingFile { opened: open::open(path, timeout)?, path: path.to_owned() })
    }

    pub fn reopen(&self) -> Result<RecordingFile, RecordError> {
        Ok(RecordingFile { opened: self.opened.reopen(&self.path, LOCK_TIMEOUT)?, path: self.path.clone() })
    }

    /// Reads what was recorded and how the recording ended, without launches and other rows.
    pub fn info(&self) -> Result<Info, RecordError> {
        Snapshot::begin(self)?.info()
    }

    /// Returns the name of each table, its number of rows and its checksum. The checksums are
    /// computed if the recording has none. Equal contents have equal checksums, wherever SQLite
    /// stores the rows in the file.
    pub fn sums(&self) -> Result<Vec<(String, u64, u64)>, RecordError> {
        Snapshot::begin(self)?.table_sums()
    }

    /// Reads everything except slices, samples and threads, as of one instant.
    ///
    /// # Errors
    /// `Corrupt` or `BadValue` if the file is damaged, `Locked` if another program holds it.
    pub fn read(&self) -> Result<Recording, RecordError> {
        Snapshot::begin(self)?.recording()
    }

    /// Reads the threads other than the first of each process, in order of creation.
    pub fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        Snapshot::begin(self)?.threads()
    }

    /// Calls `handle` with each slice in recorded order, which is nearly chronological. Slices
    /// refer to the texts and objects that `read` returns. Returns contradictions between slices
    /// and the rest of the recording.
    pub fn slices(&self, handle: &mut dyn FnMut(SliceRow)) -> Result<Contradictions, RecordError> {
        Snapshot::begin(self)?.slices(handle)
    }

    /// Calls `handle` with each sample, in no particular order. Samples refer to the stacks that
    /// `read` returns. Returns contradictions between samples and the rest of the recording.
    pub fn samples(&self, handle: &mut dyn FnMut(SampleRow)) -> Result<Contradictions, RecordError> {
        Snapshot::begin(self)?.samples(handle)
    }
}

#[cfg(test)]
mod tests;
