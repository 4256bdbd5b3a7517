//! Call sites of a recording's launches, as text that a test can spell out.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use spawnscope::analyze::model::frames::Frame;
use spawnscope::analyze::model::tree::Forest;
use spawnscope::record::reader::RecordingFile;

use super::roots::Root;
use super::run::{Finished, Record, run};
use super::workloads::path;

/// Lists the launches of a recording in order: the last argument of each (or the label, such as `(bash)`, of a fork that executes nothing)
/// and its call chain from the innermost frame outwards, such as `main.sh:5 f < main.sh:7`. Files are shown by base name. `?` marks an
/// unknown part, a truncated chain ends with `...`, and an unknown chain is empty.
pub fn labelled_chains(file: &Path) -> Vec<(String, String)> {
    let file = RecordingFile::open(file).expect("the recording");
    let recording = file.read().expect("its rows");
    let forest = Forest::build(&recording);
    let launches = forest.launches.iter().filter(|launch| launch.parent.get().is_some());
    let chains = launches.map(|launch| {
        let last = launch.execs.last().and_then(|exec| exec.arguments().last());
        let label = last.map_or_else(|| launch.command.label(), <[u8]>::to_vec);
        let mut frames = forest.frames(launch.script_stack);
        let mut chain: Vec<String> = frames.by_ref().map(|frame| location(&frame)).collect();
        if frames.is_truncated() {
            chain.push("...".to_owned());
        }
        (text(&label), chain.join(" < "))
    });
    chains.collect()
}

/// Returns the chain of the only launch with this label.
#[track_caller]
pub fn chain_of<'a>(chains: &'a [(String, String)], label: &str) -> &'a str {
    let found: Vec<_> = chains.iter().filter(|(name, _)| name == label).collect();
    assert_eq!(found.len(), 1, "one launch of {label} in {chains:#?}");
    &found[0].1
}

/// A shell that runs the scripts of a test.
pub struct Shell {
    program: PathBuf,
    root: Option<Root>,
}

impl Shell {
    /// Returns a shell of this machine.
    pub fn installed(program: impl Into<PathBuf>) -> Shell {
        Shell { program: program.into(), root: None }
    }

    /// Returns a shell that is installed in a root directory and runs there.
    pub fn in_root(root: Root, program: impl Into<PathBuf>) -> Shell {
        Shell { program: program.into(), root: Some(root) }
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        let words = [self.program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new));
        match self.root {
            Some(root) => root.run(words),
            None => run(Command::new(&self.program).args(arguments)),
        }
    }

    /// Returns the label of the shell's forks that execute nothing.
    pub fn label(&self) -> String {
        format!("({})", self.program.file_name().unwrap_or_default().display())
    }

    /// Records the shell.
    pub fn record(&self, record: &Record, arguments: &[impl AsRef<OsStr>]) -> Finished {
        let words = [self.program.as_os_str()].into_iter();
        let words = words.chain(arguments.iter().map(AsRef::as_ref));
        match self.root {
            Some(root) => run(&mut root.recorder(record, words)),
            None => record.run(words),
        }
    }

    /// Records a script, in which `@t` is replaced by the path of a small program, and checks the chains of the launches whose labels are in
    /// `truth`. `other_files` are files that the script may read.
    #[track_caller]
    pub fn expect(&self, script: &str, other_files: &[(&str, &str)], truth: &[(&str, &str)]) {
        self.expect_and_list(script, other_files, truth);
    }

    /// Like `expect`, but also returns the chains of all launches.
    #[track_caller]
    pub fn expect_and_list(
        &self,
        script: &str,
        other_files: &[(&str, &str)],
        truth: &[(&str, &str)],
    ) -> Vec<(String, String)> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tiny = path("tiny").display().to_string();
        for (name, text) in other_files.iter().chain(&[("main.sh", script)]) {
            fs::write(directory.path().join(name), text.replace("@t", &tiny)).expect("a script");
        }
        let record = Record::new();
        self.record(&record, &[directory.path().join("main.sh")]).expect_code(0);
        let chains = labelled_chains(&record.file());
        for (label, chain) in truth {
            assert_eq!(chain_of(&chains, label), *chain, "of {label} by {self}");
        }
        chains
    }
}

impl std::fmt::Display for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suite = self.root.map_or("this machine", |root| root.suite);
        write!(f, "{} of {suite}", self.program.display())
    }
}

fn location(frame: &Frame<'_>) -> String {
    let file =
        frame.file.map_or("?".to_owned(), |file| text(file.rsplit(|&byte| byte == b'/').next().unwrap_or_default()));
    let line = frame.line.map_or("?".to_owned(), |line| line.to_string());
    let function = frame.function.map_or(String::new(), |function| format!(" {}", text(function)));
    format!("{file}:{line}{function}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
