//! Reads a recording with its slices and hands both on joined: what `report`, `advise` and `whatif` begin with.

use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::analyze::timeline::Timelines;
use crate::analyze::{Forest, SliceCollection};
use crate::record::reader::{Recording, RecordingFile, SliceRow};

/// Slices are most of a recording: they are read, through a connection of their own, while the launches are joined.
///
/// # Errors
/// When the recording cannot be read, or what `use_it` says.
pub fn with_timelines<T>(
    path: &Path,
    use_it: impl FnOnce(&Recording, &Forest<'_>, &Timelines) -> Result<T>,
) -> Result<T> {
    let file = RecordingFile::open(path)?;
    thread::scope(|scope| {
        let reader = thread::Builder::new().spawn_scoped(scope, || read_slices(path));
        let slices = reader.context("failed to start a thread that reads slices")?;
        let recording = file.read()?;
        let forest = Forest::grow(&recording);
        let slices = slices.join().map_err(|_| anyhow!("failed to read the slices"))??;
        let mut collection = SliceCollection::new(&recording, &forest, &file.threads()?);
        slices.into_iter().for_each(|slice| collection.push(slice));
        use_it(&recording, &forest, &collection.finish())
    })
}

fn read_slices(path: &Path) -> Result<Vec<SliceRow>> {
    let mut slices = Vec::new();
    RecordingFile::open(path)?.slices(&mut |slice| slices.push(slice))?;
    Ok(slices)
}
