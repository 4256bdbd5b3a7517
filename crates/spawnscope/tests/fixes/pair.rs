//! A pair of programs is a directory beside this file with these files:
//!
//! - `before` and `after`, scripts that do the same work and print the same output, or programs of
//!   these names that `build` creates;
//! - `whatif`, the options of `spawnscope whatif` that correspond to the fix;
//! - `truth`, the counts of launches and execs that the fix changes (`truth.rs`);
//! - `advice`, the rules of `spawnscope advise` that are right for `before`; `-` if it needs no
//!   advice;
//! - optionally `build`, run once with the directory of the pair as its argument, and `setup`, run
//!   before every run;
//! - optionally `beyond`, which explains what else the fix changes: the prediction is then not
//!   expected to be exact;
//! - optionally `around`, created by `build`, which wraps every run: `around before|after
//!   COMMAND...` prepares the environment of the command.
//!
//! All programs run in a working directory of the pair. `benchmarks/fixes.py` runs them in the same
//! way.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::run::{Record, SPAWNSCOPE, run};

const DIRECTORIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixes");
/// The tests count failed execs along PATH, so PATH must be fixed.
const PATH: &str = "/usr/bin:/bin";

#[derive(Clone, Copy)]
pub enum Variant {
    Before,
    After,
}

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Variant::Before => "before",
            Variant::After => "after",
        }
    }
}

/// A pair whose programs are built, in a working directory.
pub struct Pair {
    directory: PathBuf,
    work: TempDir,
}

/// A recording of one of the variants.
pub struct Recorded {
    pub output: Vec<u8>,
    pub file: PathBuf,
    /// Keeps the directory of the file.
    _record: Record,
}

impl Pair {
    /// Returns the names of all pairs.
    pub fn names() -> Vec<String> {
        let entries = std::fs::read_dir(DIRECTORIES).expect("the directory of the pairs");
        let entries = entries.map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> = entries
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().into_string().expect("an ASCII name"))
            .collect();
        names.sort();
        assert!(names.len() >= 12, "the pairs are found");
        names
    }

    /// Runs the `build` script of a pair.
    pub fn build(name: &str) -> Pair {
        let pair = Pair {
            directory: Path::new(DIRECTORIES).join(name),
            work: tempfile::tempdir().expect("a temporary directory"),
        };
        pair.run_script("build", &[pair.directory.as_os_str()]);
        pair.copy_scripts();
        pair
    }

    /// Copies the scripts of the variants into the working directory, where a patch can change
    /// them. Programs that `build` created stay.
    fn copy_scripts(&self) {
        for variant in [Variant::Before, Variant::After] {
            let (from, to) = (self.directory.join(variant.name()), self.work.path().join(variant.name()));
            if !to.exists() {
                std::fs::copy(&from, &to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
            }
        }
    }

    /// Applies what `advise --patch` prints for a recording of `before`, and returns what `before`
    /// then prints. `None` if the patch is empty.
    pub fn patched_output(&self, recording: &Path) -> Option<Vec<u8>> {
        let mut advise = Command::new(SPAWNSCOPE);
        let advise = advise.args(["advise", "--patch"]).arg(recording).current_dir(self.work.path());
        let patch = run(advise).expect_code(0).stdout;
        if patch.is_empty() {
            return None;
        }
        std::fs::write(self.work.path().join("changes.diff"), patch).expect("a diff");
        let apply = |options: &[&str]| {
            let mut git = Command::new("git");
            let git = git.arg("apply").args(options).arg("changes.diff").env("GIT_CEILING_DIRECTORIES", "/");
            run(git.current_dir(self.work.path())).expect_code(0);
        };
        apply(&["-p0"]);
        self.run_script("setup", &[]);
        let command = [self.around(Variant::Before), vec![format!("./{}", Variant::Before.name())]].concat();
        let mut before = Command::new(&command[0]);
        let patched = run(self.in_working_directory(before.args(&command[1..]))).expect_code(0).stdout;
        // Another attempt records what the pair contains.
        apply(&["-p0", "-R"]);
        Some(patched)
    }

    /// Reads a file of the pair's directory.
    pub fn text(&self, file: &str) -> String {
        let path = self.directory.join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs a variant under the recorder.
    pub fn record(&self, variant: Variant) -> Recorded {
        self.run_script("setup", &[]);
        let around = self.around(variant);
        let mut record = Record::new().flags(&["--quiet"]);
        if let [program, argument] = &around[..] {
            record = record.through(&[program, argument]);
        }
        let mut command = record.command([self.work.path().join(variant.name())]);
        let finished = run(self.in_working_directory(&mut command)).expect_code(0);
        Recorded { output: finished.stdout, file: record.file(), _record: record }
    }

    /// Returns the command that runs a variant in the surroundings that the pair needs; empty if it
    /// needs none.
    fn around(&self, variant: Variant) -> Vec<String> {
        match self.work.path().join("around").exists() {
            true => vec!["./around".to_owned(), variant.name().to_owned()],
            false => Vec::new(),
        }
    }

    /// Runs a script of the pair, if there is one of this name.
    fn run_script(&self, name: &str, arguments: &[&OsStr]) {
        let script = self.directory.join(name);
        if script.exists() {
            run(self.in_working_directory(Command::new(script).args(arguments))).expect_code(0);
        }
    }

    fn in_working_directory<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.current_dir(self.work.path()).env("PATH", PATH).env("LC_ALL", "C")
    }
}
