//! Runs the steps of the GitHub action in `action/` as GitHub does, with its environment files, on
//! recordings of a script before and after a fix. A `spawnscope` in PATH replaces `record`, which
//! needs privileges that tests lack.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Finished, run, write_program};
use crate::stored::{AFTER, BEFORE, create_recording};

const ACTION: &str = include_str!("../../../action/action.yml");

/// A job of a workflow, with its workspace and environment files.
struct Job(tempfile::TempDir);

impl Job {
    fn new() -> Job {
        let job = Job(tempfile::tempdir().unwrap());
        for directory in ["workspace", "programs", "temp"] {
            fs::create_dir(job.path(directory)).unwrap();
        }
        for file in ["output", "summary", "path"] {
            fs::write(job.path(file), "").unwrap();
        }
        job
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn add_program(&self, name: &str, text: &str) {
        write_executable(&self.path("programs").join(name), text);
    }

    /// Adds a `spawnscope` whose `record` writes its arguments to the file `recorded`, and a `sudo`
    /// that needs no privilege.
    fn add_spawnscope(&self) {
        let real = env!("CARGO_BIN_EXE_spawnscope");
        let recorded = self.path("recorded").display().to_string();
        let record = format!("printf '%s\\n' \"$@\" >{recorded}");
        let script = format!("if [ \"$1\" = record ]; then {record}; else exec {real} \"$@\"; fi");
        self.add_program("spawnscope", &script);
        self.add_program("sudo", "while [ \"$1\" != env ]; do shift; done\nexec \"$@\"");
    }

    /// Adds a recording to the directory that the action reads by default.
    fn add_recording(&self, name: &str, rows: &str) {
        let directory = self.path("workspace/spawnscope");
        fs::create_dir_all(&directory).unwrap();
        create_recording(&directory.join(name), rows);
    }

    fn run_step(&self, script: &str, inputs: &[(&str, &str)]) -> Finished {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action").join(script);
        let path = format!("{}:{}", self.path("programs").display(), std::env::var("PATH").unwrap());
        let mut step = Command::new(script);
        step.current_dir(self.path("workspace"))
            .env("PATH", path)
            .env("GITHUB_WORKSPACE", self.path("workspace"))
            .env("GITHUB_OUTPUT", self.path("output"))
            .env("GITHUB_STEP_SUMMARY", self.path("summary"))
            .env("GITHUB_PATH", self.path("path"))
            .env("RUNNER_TEMP", self.path("temp"))
            .envs(inputs.iter().copied());
        run(&mut step)
    }

    /// Runs a step that must succeed, and returns its standard output.
    fn run_passing_step(&self, script: &str, inputs: &[(&str, &str)]) -> String {
        self.run_step(script, inputs).expect_code(0).output()
    }
}

fn write_executable(path: &Path, text: &str) {
    write_program(path, format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn the_command_is_recorded_as_it_was_given() {
    let job = Job::new();
    job.add_spawnscope();
    let command = "make \"$TARGET\" && ./run.sh $(nproc); echo 'a;b'";
    let inputs = [("INPUT_RUN", command), ("INPUT_RUNS", "5"), ("INPUT_DIRECTORY", "launches")];
    job.run_passing_step("record.sh", &inputs);
    let directory = job.path("workspace/launches");
    assert!(directory.is_dir());
    assert_eq!(job.read("output"), format!("directory={}\n", directory.display()));
    let output = directory.join("run.db").display().to_string();
    let expected = format!("record --runs 5 -o {output} -- bash -euo pipefail -c");
    let expected: Vec<&str> = expected.split(' ').chain([command]).collect();
    assert_eq!(job.read("recorded").lines().collect::<Vec<_>>(), expected);
}

#[test]
fn an_input_cannot_add_an_output() {
    let job = Job::new();
    job.add_spawnscope();
    let directory = ("INPUT_DIRECTORY", "a\nwithin-budget=true");
    job.run_step("record.sh", &[("INPUT_RUN", "true"), directory]).expect_code(1);
    assert_eq!(job.read("output"), "");
    job.run_step("record.sh", &[("INPUT_RUN", "true"), ("INPUT_RUNS", "3; id")]).expect_code(1);
    assert!(!job.path("recorded").exists());
}

#[test]
fn an_exceeded_budget_is_an_output_and_the_fixed_script_stays_within_it() {
    for (rows, is_within) in [(BEFORE, "false"), (AFTER, "true")] {
        let job = Job::new();
        job.add_spawnscope();
        job.add_recording("run.1.db", rows);
        job.add_recording("run.2.db", rows);
        let directory = job.path("workspace/spawnscope");
        let inputs = [
            ("INPUT_DIRECTORY", directory.to_str().unwrap()),
            ("INPUT_BUDGETS", "--per-command dirname=3\n--max-launches 100"),
        ];
        let text = job.run_passing_step("check.sh", &inputs);
        assert_eq!(job.read("output"), format!("within-budget={is_within}\n"));
        let annotation =
            "::error file=relocate.sh,line=5,title=launches of dirname%3A 10%2C budget 3::dirname: 10 launches";
        assert_eq!(text.contains(annotation), is_within == "false", "{text}");
        let summary = job.read("summary");
        assert!(summary.contains("launches of dirname"), "{summary}");
        let report = fs::read_to_string(directory.join("report.txt")).unwrap();
        assert!(report.contains("bash relocate.sh"), "{report}");
    }
}

#[test]
fn a_baseline_adds_the_difference_to_the_summary() {
    let job = Job::new();
    job.add_spawnscope();
    job.add_recording("run.1.db", BEFORE);
    job.add_recording("main.db", AFTER);
    let directory = job.path("workspace/spawnscope");
    let inputs = [("INPUT_DIRECTORY", directory.to_str().unwrap()), ("INPUT_BASELINE", "spawnscope/main.db\n")];
    job.run_passing_step("check.sh", &inputs);
    assert_eq!(job.read("output"), "within-budget=false\n");
    let summary = job.read("summary");
    assert!(summary.contains("dirname 0 -> 10 launches at relocate.sh:5"), "{summary}");
    assert!(summary.contains("launches against baseline"), "{summary}");
    assert!(directory.join("diff.md").exists());
}

#[test]
fn budgets_are_split_into_words_and_not_evaluated() {
    let job = Job::new();
    job.add_spawnscope();
    job.add_recording("run.db", BEFORE);
    let directory = job.path("workspace/spawnscope");
    let hostile = "--max-launches 100 $(touch pwned) `touch pwned`";
    let inputs = [("INPUT_DIRECTORY", directory.to_str().unwrap()), ("INPUT_BUDGETS", hostile)];
    // These words are not recordings.
    job.run_step("check.sh", &inputs).expect_code(125);
    assert_eq!(job.read("output"), "");
    assert!(!job.path("workspace/pwned").exists());
}

#[test]
fn a_release_is_installed_if_its_checksum_is_right() {
    let job = Job::new();
    let releases = job.path("releases/download/v9.8.7");
    let arch = rustix::system::uname().machine().to_str().unwrap().to_owned();
    let name = format!("spawnscope-9.8.7-{arch}-linux");
    let archive = format!("{name}.tar.gz");
    let programs = releases.join(&name).join("bin");
    fs::create_dir_all(&programs).unwrap();
    write_executable(&programs.join("spawnscope"), "echo release");
    let pack = format!("cd {} && tar -czf {archive} {name} && sha256sum {archive} >SHA256SUMS", releases.display());
    assert!(Command::new("sh").args(["-c", &pack]).status().unwrap().success());
    let url = format!("file://{}", job.path("releases").display());
    let inputs = [("INPUT_VERSION", "9.8.7"), ("SPAWNSCOPE_RELEASES", url.as_str())];
    job.run_passing_step("install.sh", &inputs);
    let directory = job.read("path");
    let program = Path::new(directory.trim()).join("spawnscope");
    assert_eq!(Command::new(program).output().unwrap().stdout, b"release\n");
    fs::write(releases.join(&archive), "something else").unwrap();
    fs::write(job.path("path"), "").unwrap();
    let refused = job.run_step("install.sh", &inputs).expect_code(1);
    assert!(refused.output().contains("the checksum of"), "{}", refused.output());
    assert_eq!(job.read("path"), "");
    job.run_step("install.sh", &[("INPUT_VERSION", "../../evil")]).expect_code(1);
}

#[test]
fn inputs_reach_the_scripts_only_as_variables() {
    let mut has_script = false;
    let mut inputs = Vec::new();
    for line in ACTION.lines() {
        let trimmed = line.trim();
        if let Some(script) = trimmed.strip_prefix("run: '") {
            has_script = true;
            assert!(!script.contains("${{"), "{line}");
        }
        let assigned = trimmed.split_once(": ${{ ").map(|(name, _)| name.to_owned());
        inputs.extend(assigned.filter(|name| name.starts_with("INPUT_")));
    }
    assert!(has_script && inputs.len() >= 9, "{inputs:?}");
    let scripts = ["install.sh", "record.sh", "check.sh"].map(|name| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../action").join(name);
        assert!(ACTION.contains(&format!("/{name}\"'")), "{name} is a step");
        fs::read_to_string(path).unwrap()
    });
    for input in inputs {
        let is_read = scripts.iter().any(|script| script.contains(&input));
        assert!(is_read, "no script reads {input}");
    }
}
