//! The context that all experiments share: a directory in which programs may be executed, the tiny
//! programs, the effort, and a watcher that receives progress and can stop the run.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::LabError;
use crate::batches::{Case, Effort, interleave};
use crate::measurements::Measurements;
use crate::worker::protocol::{Mechanism, Program};
use spawnscope_system::tiny;

pub struct ExperimentContext<'a> {
    pub effort: Effort,
    pub max_memory: u64,
    directory: TempDir,
    watch: &'a dyn Watch,
}

pub trait Watch {
    /// Receives the current step, which is empty during measurements, and the finished share.
    /// Returns whether to continue; if not, the results so far are kept.
    fn report_progress(&self, doing: &str, share: f64) -> bool;
}

impl<'a> ExperimentContext<'a> {
    pub fn prepare(effort: Effort, max_memory: u64, watch: &'a dyn Watch) -> Result<ExperimentContext<'a>, LabError> {
        let temporary = std::env::temp_dir();
        let directory = executable_directory(&temporary).map_err(|error| {
            LabError::Unavailable(format!("{}: {error}; set TMPDIR to another directory", temporary.display()))
        })?;
        Ok(ExperimentContext { effort, max_memory, directory, watch })
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Returns the tiny program, which exits immediately: a few instructions, without libraries.
    pub fn tiny(&self) -> Program {
        Program::new([self.tiny_path()]).with_status(STATUS)
    }

    pub fn tiny_path(&self) -> PathBuf {
        self.directory.path().join(TINY)
    }

    /// Returns the tiny program for a mechanism. If the mechanism reads the program's output from a
    /// pipe, the program also writes a word.
    pub fn tiny_for(&self, mechanism: Mechanism) -> Program {
        if !mechanism.reads_output() {
            return self.tiny();
        }
        let path = self.directory.path().join(SPEAKER);
        Program { output: WORD.to_owned(), ..Program::new([path]).with_status(STATUS) }
    }

    pub fn interleave(&self, cases: Vec<Case<'_>>) -> Vec<Measurements> {
        self.interleave_part(cases, 0.0, 1.0)
    }

    /// Measures cases in turn as one part of an experiment. `share` is the part's share of the
    /// experiment's time, and `done` is the share that earlier parts have used.
    pub fn interleave_part(&self, cases: Vec<Case<'_>>, done: f64, share: f64) -> Vec<Measurements> {
        let effort = Effort { time: self.effort.time.mul_f64(share), ..self.effort };
        interleave(effort, cases, &|fraction| self.watch.report_progress("", done + fraction * share))
    }

    pub fn report_progress(&self, doing: &str, share: f64) -> bool {
        self.watch.report_progress(doing, share)
    }

    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.effort.quick { quick } else { full }
    }
}

/// The exit status of the tiny programs, which proves that they ran.
pub(super) const STATUS: i32 = 42;
const WORD: &str = "ran\n";
const TINY: &str = "tiny";
const SPEAKER: &str = "tiny-speaker";

fn executable_directory(directory: &Path) -> Result<TempDir, LabError> {
    if !directory.to_str().is_some_and(|name| name.chars().all(is_plain)) {
        return Err(LabError::Unavailable(
            "its name has characters with a special meaning in linkers, shells or PATH".to_owned(),
        ));
    }
    let directory = tempfile::Builder::new()
        .prefix("spawnscope-lab-")
        .tempdir_in(directory)
        .map_err(LabError::doing("create a directory"))?;
    write_tiny(&directory.path().join(TINY), None)?;
    write_tiny(&directory.path().join(SPEAKER), Some(WORD))?;
    let status = Command::new(directory.path().join(TINY)).status().map_err(LabError::doing("execute a program"))?;
    match status.code() {
        Some(STATUS) => Ok(directory),
        _ => Err(LabError::Invalid(format!("the tiny program ended with {status}"))),
    }
}

/// Writes a tiny program to a new file. With `word`, the program writes that word.
fn write_tiny(path: &Path, word: Option<&str>) -> Result<(), LabError> {
    let program = tiny::program(STATUS as u8, word.unwrap_or_default());
    let doing = LabError::doing(format!("write {}", path.display()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(path).map_err(&doing)?;
    file.write_all(&program).map_err(doing)
}

/// Returns whether a character has no special meaning: commas separate linker options, colons
/// separate directories in PATH, and white space and quotes are special in shells.
fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || "/._-+=@%~^".contains(character)
}
