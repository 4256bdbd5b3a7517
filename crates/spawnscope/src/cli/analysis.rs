//! Reads a recording and its slices and joins them. `report`, `advise` and `whatif` start here.

use std::mem;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::analyze::timeline::Timelines;
use crate::analyze::{Forest, SliceCollection, Slices};
use crate::record::reader::{Contradictions, Recording, RecordingFile};

/// Reads a recording and its slices, and passes them to `use_it`. Slices are most of a recording, so a second connection reads them while
/// the launches are read and joined. The recording is passed without its launch and exec rows, which the forest has already joined. Rows
/// that contradict each other are passed as contradictions.
///
/// # Errors
/// When the recording cannot be read, or `use_it` fails.
pub fn with_timelines<T>(
    path: &Path,
    use_it: impl FnOnce(&Recording, &Forest<'_>, &Timelines, Contradictions) -> Result<T>,
) -> Result<T> {
    let file = RecordingFile::open(path)?;
    thread::scope(|scope| {
        let other = file.again()?;
        let reader = thread::Builder::new().spawn_scoped(scope, move || read_slices(&other));
        let slices = reader.context("failed to start a thread that reads slices")?;
        let mut recording = file.read()?;
        let (launches, execs) = (mem::take(&mut recording.launches), mem::take(&mut recording.execs));
        let forest = Forest::join(&recording, &launches, &execs);
        drop((launches, execs));
        let (slices, found) = slices.join().map_err(|_| anyhow!("failed to read the slices"))??;
        let mut contradictions = recording.info.contradictions.clone();
        contradictions.extend(found);
        let collection = SliceCollection::new(&forest, &file.threads()?);
        use_it(&recording, &forest, &collection.with(slices).finish(), contradictions)
    })
}

fn read_slices(file: &RecordingFile) -> Result<(Slices, Contradictions)> {
    let mut slices = Slices::default();
    let contradictions = file.slices(&mut |slice| slices.push(slice))?;
    Ok((slices, contradictions))
}
