//! Reads a recording with its slices and hands both on joined: what `report`, `advise` and `whatif` begin with.

use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::analyze::timeline::Timelines;
use crate::analyze::{Forest, SliceCollection};
use crate::record::reader::{Contradictions, Recording, RecordingFile, SliceRow};

/// Slices are most of a recording: they are read, through a connection of their own, while the launches are joined. What of
/// the recording cannot be true comes with it.
///
/// # Errors
/// When the recording cannot be read, or what `use_it` says.
pub fn with_timelines<T>(
    path: &Path,
    use_it: impl FnOnce(&Recording, &Forest<'_>, &Timelines, Contradictions) -> Result<T>,
) -> Result<T> {
    let file = RecordingFile::open(path)?;
    thread::scope(|scope| {
        let other = file.again()?;
        let reader = thread::Builder::new().spawn_scoped(scope, move || read_slices(&other));
        let slices = reader.context("failed to start a thread that reads slices")?;
        let recording = file.read()?;
        let forest = Forest::grow(&recording);
        let (slices, found) = slices.join().map_err(|_| anyhow!("failed to read the slices"))??;
        let mut contradictions = recording.info.contradictions.clone();
        contradictions.extend(found);
        let mut collection = SliceCollection::new(&recording, &forest, &file.threads()?);
        slices.into_iter().for_each(|slice| collection.push(slice));
        use_it(&recording, &forest, &collection.finish(), contradictions)
    })
}

fn read_slices(file: &RecordingFile) -> Result<(Vec<SliceRow>, Contradictions)> {
    let mut slices = Vec::new();
    let contradictions = file.slices(&mut |slice| slices.push(slice))?;
    Ok((slices, contradictions))
}
