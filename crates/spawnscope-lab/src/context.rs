//! What experiments share: a directory in which programs may be executed, the tiny programs, the effort, and the request to stop.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::LabError;
use super::batches::Case;
use super::harness::{Effort, Measured, interleave};
use super::keeper::{self, Keeper};
use super::memory::Room;
use super::outcome::Outcome;
use super::tiny;
use super::worker::Mechanism;
use super::worker::protocol::Program;

/// The context in which experiments run.
pub struct ExperimentContext<'a> {
    /// How much to measure.
    pub effort: Effort,
    /// The largest parent, in bytes.
    pub max_memory: u64,
    directory: TempDir,
    /// Declared after the directory, so that the keeper is dropped when the directory is already removed.
    _keeper: Option<Keeper>,
    notes: RefCell<Vec<String>>,
    watch: &'a dyn Watch,
}

/// Receives progress, and can stop the run.
pub trait Watch {
    /// Reports the current step and the finished share. Returning false stops the run; results so far are kept.
    fn may_continue(&self, doing: &str, share: f64) -> bool;
}

impl<'a> ExperimentContext<'a> {
    /// Finds a directory and writes the tiny programs there.
    ///
    /// # Errors
    /// If no directory allows executing programs.
    pub fn prepare(effort: Effort, max_memory: u64, watch: &'a dyn Watch) -> Result<ExperimentContext<'a>, LabError> {
        let (directory, notes) = executable_directory()?;
        Ok(ExperimentContext {
            effort,
            max_memory,
            _keeper: Keeper::start(directory.path()),
            directory,
            notes: RefCell::new(notes),
            watch,
        })
    }

    /// Notes about the machine, for every report.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    /// The directory of this run.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The child that ends at once: a few instructions, without libraries.
    #[must_use]
    pub fn tiny(&self) -> Program {
        Program::new([self.tiny_path()]).ends_with(tiny::STATUS)
    }

    /// The path of that program.
    #[must_use]
    pub fn tiny_path(&self) -> PathBuf {
        self.directory.path().join(TINY)
    }

    /// The tiny program for a mechanism: one that also writes a word if the mechanism reads its output from a pipe.
    #[must_use]
    pub fn tiny_for(&self, mechanism: Mechanism) -> Program {
        if !mechanism.reads() {
            return self.tiny();
        }
        let path = self.directory.path().join(SPEAKER);
        Program::new([path]).ends_with(tiny::STATUS).says(tiny::WORD)
    }

    /// Measures cases in turns.
    #[must_use]
    pub fn interleave(&self, cases: Vec<Case<'_>>) -> Vec<Measured> {
        self.interleave_part(cases, 0.0, 1.0)
    }

    /// Measures cases in turns as one part of an experiment: `share` of its time, following parts that took `after`.
    #[must_use]
    pub fn interleave_part(&self, cases: Vec<Case<'_>>, after: f64, share: f64) -> Vec<Measured> {
        let effort = Effort {
            time: self.effort.time.mul_f64(share),
            ..self.effort
        };
        interleave(effort, cases, &|done| self.watch.may_continue("", after + done * share))
    }

    /// Reports a preparation step; false: stop.
    #[must_use]
    pub fn may_continue(&self, doing: &str, share: f64) -> bool {
        self.watch.may_continue(doing, share)
    }

    /// The size of each of several parents that live at the same time: `wanted`, or less if memory is short, which a note then says.
    #[must_use]
    pub fn size_of_each(&self, wanted: u64, parents: u64, outcome: &mut Outcome) -> u64 {
        let wanted = wanted.min(self.max_memory);
        let room = Room::here();
        let size = wanted.min(room.each).min(room.in_all / parents);
        if size < wanted {
            outcome.note(format!(
                "parents of {} instead of {}: not enough memory",
                spawnscope_data::units::bytes(size),
                spawnscope_data::units::bytes(wanted)
            ));
        }
        size
    }

    /// One of two values, depending on the effort.
    #[must_use]
    pub fn pick<T>(&self, whole: T, quick: T) -> T {
        if self.effort.quick { quick } else { whole }
    }
}

const TINY: &str = "tiny";
const SPEAKER: &str = "tiny-speaker";

/// The first directory in which the tiny program can be executed, and why earlier candidates failed.
fn executable_directory() -> Result<(TempDir, Vec<String>), LabError> {
    let home = std::env::home_dir().map(|home| home.join(".cache"));
    let directories = [
        Some(std::env::temp_dir()),
        Some(PathBuf::from("/tmp")),
        Some(PathBuf::from("/var/tmp")),
        home,
        std::env::current_dir().ok(),
    ];
    let mut refused: Vec<String> = Vec::new();
    for directory in directories.into_iter().flatten() {
        match try_directory(&directory) {
            Ok(created) => {
                let note = |why: &String| format!("{why} could not be used; used {} instead", directory.display());
                return Ok((created, refused.iter().map(note).collect()));
            }
            Err(error) => {
                let reason = format!("{} ({error})", directory.display());
                if !refused.contains(&reason) {
                    refused.push(reason);
                }
            }
        }
    }
    Err(LabError::Unavailable(format!(
        "no directory allows executing programs; set TMPDIR to one that does. Tried: {}",
        refused.join(", ")
    )))
}

fn try_directory(directory: &Path) -> Result<TempDir, LabError> {
    if !directory.to_str().is_some_and(|name| name.chars().all(is_plain)) {
        return Err(LabError::Unavailable(
            "its name has characters with a special meaning in linkers, shells or PATH".to_owned(),
        ));
    }
    let directory = tempfile::Builder::new()
        .prefix(keeper::PREFIX)
        .tempdir_in(directory)
        .map_err(LabError::doing("create a directory"))?;
    tiny::write(&directory.path().join(TINY), None)?;
    tiny::write(&directory.path().join(SPEAKER), Some(tiny::WORD))?;
    let status = Command::new(directory.path().join(TINY))
        .status()
        .map_err(LabError::doing("execute a program"))?;
    match status.code() {
        Some(tiny::STATUS) => Ok(directory),
        _ => Err(LabError::Invalid(format!("the tiny program ended with {status}"))),
    }
}

/// Commas separate linker options, colons separate directories in PATH, and white space and quotes are special in shells.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || "/._-+=@%~^".contains(character)
}
