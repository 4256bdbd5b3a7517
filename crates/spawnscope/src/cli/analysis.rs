//! Reads a recording and its slices and joins them. `report`, `advise` and `whatif` start here.

use std::mem;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::analyze::reconstruct::reconstruct;
use crate::analyze::timeline::Timelines;
use crate::analyze::window::{Part, Window, WindowTitle, choose};
use crate::analyze::{Forest, Scope, SliceCollection, Slices};
use crate::record::reader::{Contradictions, Recording, RecordingFile, ThreadRow};

/// What the analysis starts from.
pub struct Input<'r, 'f> {
    /// The recording, or the window of it, without its launch and exec rows, which the forest has already joined.
    pub recording: &'r Recording,
    /// Its launches.
    pub forest: &'f Forest<'r>,
    /// Its threads and slices.
    pub timelines: &'f Timelines,
    /// Rows that contradict each other.
    pub contradictions: Contradictions,
    /// The window. `None` for the whole recording.
    pub window: Option<WindowTitle>,
}

/// Reads a part of a recording and its slices, and passes them to `use_it`. Slices are most of a recording, so a second connection reads them
/// while the launches are read.
///
/// # Errors
/// When the recording cannot be read or does not have that part, or `use_it` fails.
pub fn with_timelines<T>(path: &Path, part: Part, use_it: impl FnOnce(Input<'_, '_>) -> Result<T>) -> Result<T> {
    with_timelines_of(&RecordingFile::open(path)?, part, use_it)
}

/// Does the same for a recording that is open already.
///
/// # Errors
/// Those of [`with_timelines`].
pub fn with_timelines_of<T>(
    file: &RecordingFile,
    part: Part,
    use_it: impl FnOnce(Input<'_, '_>) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let other = file.reopen()?;
        let reader = thread::Builder::new().spawn_scoped(scope, move || read_slices(&other));
        let reader = reader.context("failed to start a thread that reads slices")?;
        let mut recording = file.read()?;
        let mut threads = file.threads()?;
        let window = window_of(&recording, &threads, part)?;
        if let Some(window) = &window {
            window.cut(&mut recording);
            threads = window.cut_threads(threads);
        }
        let (launches, execs) = (mem::take(&mut recording.launches), mem::take(&mut recording.execs));
        let forest = Forest::join(&recording, &launches, &execs);
        drop((launches, execs));
        let collection = SliceCollection::new(&forest, &threads);
        let (mut slices, found) = reader.join().map_err(|_| anyhow!("failed to read the slices"))??;
        if let Some(window) = &window {
            slices = window.cut_slices(&slices);
        }
        let mut contradictions = recording.info.contradictions.clone();
        contradictions.extend(found);
        use_it(Input {
            recording: &recording,
            forest: &forest,
            timelines: &reconstruct(&recording, &forest, &threads, collection.with(slices).finish()),
            contradictions,
            window: window.map(|window| window.title().clone()),
        })
    })
}

/// Returns the window for a part of a recording. Most recordings are of a command, and explained as a whole.
fn window_of(recording: &Recording, threads: &[ThreadRow], part: Part) -> Result<Option<Window>> {
    if matches!(part, Part::Whole | Part::Main) && recording.info.scope == Scope::Command {
        return Ok(None);
    }
    Ok(choose(recording, &Forest::build(recording), threads, part)?)
}

fn read_slices(file: &RecordingFile) -> Result<(Slices, Contradictions)> {
    let mut slices = Slices::default();
    let contradictions = file.slices(&mut |slice| slices.push(slice))?;
    Ok((slices, contradictions))
}
