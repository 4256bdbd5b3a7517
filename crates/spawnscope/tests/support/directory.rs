//! A directory with stored recordings, in which the program runs.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::run::{Finished, SPAWNSCOPE, run};
use super::stored::create_recording;

pub struct Directory(TempDir);

impl Directory {
    /// Creates a directory with recordings of these names and rows.
    pub fn with(recordings: &[(&str, &str)]) -> Directory {
        let directory = Directory(tempfile::tempdir().unwrap());
        recordings.iter().for_each(|(name, rows)| create_recording(&directory.path(name), rows));
        directory
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SPAWNSCOPE);
        command.args(arguments).current_dir(self.0.path());
        for name in ["COLUMNS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"] {
            command.env_remove(name);
        }
        command
    }

    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> Finished {
        run(&mut self.command(arguments))
    }

    /// Returns the standard output of a success.
    #[track_caller]
    pub fn text(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect_code(0).output()
    }

    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        self.run(arguments).json()
    }

    /// Returns the message of a failure of spawnscope itself, which prints nothing else.
    #[track_caller]
    pub fn failure(&self, arguments: &[&str]) -> String {
        let finished = self.run(arguments).expect_code(125);
        assert_eq!(finished.output(), "", "{arguments:?}");
        finished.errors()
    }
}
