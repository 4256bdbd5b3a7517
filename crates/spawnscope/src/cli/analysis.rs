//! Reads a recording with its slices, and joins them. Most verbs that read a recording start here.

use std::borrow::Cow;
use std::mem;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use super::output::print_contradictions;
use super::resources::share_freed_memory;
use crate::analyze::explain::advice::AdviceList;
use crate::analyze::model::timeline::Timelines;
use crate::analyze::model::window::{Part, Window, WindowTitle, choose};
use crate::analyze::path::critical_path::{Stretch, stretches};
use crate::analyze::predict::replay::{Parameters, Replay, is_reliable};
use crate::analyze::predict::whatif::constants::Constants;
use crate::analyze::predict::whatif::{AppliedChange, WhatIf};
use crate::analyze::waits::reconstruct::reconstruct;
use crate::analyze::{self, Causes, CriticalPath, Forest, GroupBy, Report, Scope, SliceCollection, Slices};
use crate::event::Nanos;
use crate::record::reader::{Contradictions, Recording, RecordingFile, ThreadRow};

pub struct Input<'r, 'f> {
    /// The recording, or a window of it. Its launch and exec rows were moved into the forest.
    pub recording: &'r Recording,
    /// The joined launches and execs of `recording`.
    pub forest: &'f Forest<'r>,
    /// The threads of `recording` with their slices.
    pub timelines: &'f Timelines,
    pub contradictions: Contradictions,
    /// The title of the window. `None` if `recording` is the whole recording.
    pub window: Option<WindowTitle>,
}

impl Input<'_, '_> {
    /// Returns the critical path by launch, if it is known.
    pub fn path(&self) -> Option<CriticalPath> {
        analyze::critical_path(self.forest, self.timelines, Parameters::of(self.recording)?.wall)
    }

    /// Returns the critical path in time, if it is known.
    pub fn stretches(&self) -> Option<Vec<Stretch>> {
        stretches(self.forest, self.timelines, Parameters::of(self.recording)?.wall)
    }

    /// Predicts what changes save together. `None` if the recording cannot be replayed.
    pub fn saving(&self, changes: &[AppliedChange]) -> Option<[Nanos; 3]> {
        let Input { recording, forest, timelines, .. } = self;
        let replay = Replay::new(forest, timelines, &Parameters::of(recording)?)?;
        let whatif = WhatIf { forest, timelines, replay: &replay, constants: &Constants::of(recording, forest) };
        is_reliable(replay.error()).then(|| whatif.predict(changes).saving())
    }

    /// Returns the report without its waits, and the critical path by launch.
    pub fn report(&self, group_by: GroupBy) -> (Report, Option<CriticalPath>) {
        let causes = Causes::find(self.recording, self.forest, self.timelines);
        let report = analyze::report_on(self.recording, self.forest, causes.as_ref(), group_by);
        (report, causes.map(|causes| causes.path))
    }
}

/// Predicts what the first pieces of advice save together, if the files of the user have changed
/// which these are.
pub fn predict_together(advices: &mut AdviceList, path: &Path, part: Part) -> Result<()> {
    if let Some(changes) = advices.unpredicted() {
        let file = RecordingFile::open(path)?;
        advices.together = with_timelines_of(&file, part, &mut |_| {}, |input| Ok(input.saving(&changes)))?;
    }
    Ok(())
}

/// Reads a recording without its slices, and prints its contradictions.
pub fn read_launches(file: &RecordingFile, path: &Path) -> Result<Recording> {
    let recording = file.read()?;
    print_contradictions(path, &recording.info.contradictions);
    Ok(recording)
}

/// Reads a part of a recording and its slices, prints its contradictions, and passes everything to
/// `analyze`.
pub fn with_timelines<T>(path: &Path, part: Part, analyze: impl FnOnce(Input<'_, '_>) -> Result<T>) -> Result<T> {
    with_timelines_of(&RecordingFile::open(path)?, part, &mut |_| {}, |input| {
        print_contradictions(path, &input.contradictions);
        analyze(input)
    })
}

/// Like [`with_timelines`], for a recording that is already open, and without a message. `prepare`
/// may add rows to it. Slices are most of a recording, so a second connection reads them while the
/// launches are read.
pub fn with_timelines_of<T>(
    file: &RecordingFile,
    part: Part,
    prepare: &mut dyn FnMut(&mut Recording),
    analyze: impl FnOnce(Input<'_, '_>) -> Result<T>,
) -> Result<T> {
    share_freed_memory();
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
        let forest = Forest::join(&recording, Cow::Owned(launches), &execs);
        drop(execs);
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
            timelines: &reconstruct(&recording, &forest, &threads, collection.finish(slices)),
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
