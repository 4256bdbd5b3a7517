//! Reads a recording with its slices, and joins them. `report`, `advise` and `whatif` start here.

use std::mem;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::analyze::model::timeline::Timelines;
use crate::analyze::model::window::{Part, Window, WindowTitle, choose};
use crate::analyze::waits::reconstruct::reconstruct;
use crate::analyze::{Forest, Scope, SliceCollection, Slices};
use crate::record::reader::{Contradictions, Recording, RecordingFile, ThreadRow};

pub struct Input<'r, 'f> {
    /// The recording, or a window of it. Its launch and exec rows were moved into the forest.
    pub recording: &'r Recording,
    /// The joined launches and execs of `recording`.
    pub forest: &'f Forest<'r>,
    /// The threads of `recording` with their slices.
    pub timelines: &'f Timelines,
    /// Rows that contradict each other.
    pub contradictions: Contradictions,
    /// The title of the window. `None` if `recording` is the whole recording.
    pub window: Option<WindowTitle>,
}

/// Reads a part of a recording and its slices, and passes them to `analyze`. Slices are most of a recording, so a second connection reads them
/// while the launches are read.
pub fn with_timelines<T>(path: &Path, part: Part, analyze: impl FnOnce(Input<'_, '_>) -> Result<T>) -> Result<T> {
    with_timelines_of(&RecordingFile::open(path)?, part, &mut |_| {}, analyze)
}

/// Like [`with_timelines`], for a recording that is already open. `prepare` may add rows to it.
pub fn with_timelines_of<T>(
    file: &RecordingFile,
    part: Part,
    prepare: &mut dyn FnMut(&mut Recording),
    analyze: impl FnOnce(Input<'_, '_>) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let second_connection = file.reopen()?;
        let reader = thread::Builder::new().spawn_scoped(scope, move || read_slices(&second_connection));
        let reader = reader.context("failed to start a thread that reads slices")?;
        let mut recording = file.read()?;
        prepare(&mut recording);
        let mut threads = file.threads()?;
        let window = choose_window(&recording, &threads, part)?;
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
        analyze(Input {
            recording: &recording,
            forest: &forest,
            timelines: &reconstruct(&recording, &forest, &threads, collection.with_slices(slices).finish()),
            contradictions,
            window: window.map(|window| window.title().clone()),
        })
    })
}

/// Returns the window for a part of a recording. `None` if the part is the whole recording.
fn choose_window(recording: &Recording, threads: &[ThreadRow], part: Part) -> Result<Option<Window>> {
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
