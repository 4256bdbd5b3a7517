//! What each collector must record and leave unchanged. Both suites run these tests.

use std::collections::HashMap;
use std::fs;

use crate::support::inherited::assert_a_recorded_command_inherits_the_same;
use crate::support::job_control::assert_a_shell_sees_stops_through;
use crate::support::prelude::*;
use crate::support::run::{COLLECTOR, uses_ptrace};
use crate::support::workloads::directory;

const ENOENT: i64 = 2;
const EACCES: i64 = 13;
const ENOTDIR: i64 = 20;

#[apply(live_test)]
#[needs(Cc)]
fn each_mechanism_is_distinguished_and_counted() {
    let (truth, launches) = Record::new().truth_and_launches([path("mechanisms"), path("tiny")]);
    let mut counted: HashMap<&str, i64> = HashMap::new();
    for child in launches.children_of(launches.root()) {
        *counted.entry(child.mechanism()).or_default() += 1;
    }
    for mechanism in ["fork", "vfork", "posix_spawn", "clone", "clone3"] {
        assert_eq!(counted.remove(mechanism), Some(truth.one(mechanism)), "launches by {mechanism}");
    }
    assert!(counted.is_empty(), "unexpected mechanisms: {counted:?}");
}

#[apply(live_test)]
#[needs(Cc)]
fn an_exec_by_a_thread_that_is_not_the_leader_stays_one_launch() {
    let (truth, launches) = Record::new().truth_and_launches([path("thread_exec"), path("tiny")]);
    assert_eq!(launches.0.len(), 2, "a thread is not a launch");
    let child = launches.with_pid(truth.one("child"));
    assert_eq!(child.programs(), ["tiny"]);
    assert_eq!(child.exit_code(), Some(0));
    // The end of the old leader is not the end of the process: `run` covers the whole new program.
    assert!(child.phase_ns("run").is_some(), "{child}");
    assert!(child.phase_ns("reap").is_some() || uses_ptrace(), "{child}");
}

#[apply(live_test)]
#[needs(Cc)]
fn a_path_search_lists_each_directory_and_its_error() {
    let directories = tempfile::tempdir().expect("a temporary directory");
    let mut search: Vec<String> = Vec::new();
    let mut expected: Vec<(String, i64)> = Vec::new();
    for number in 0..12 {
        let directory = directories.path().join(format!("dead{number}"));
        let errno = match number {
            3 => {
                fs::write(&directory, "").expect("a file in a directory's place");
                ENOTDIR
            }
            7 => {
                fs::create_dir(&directory).expect("a directory");
                fs::write(directory.join("tiny"), "").expect("a file that is not executable");
                EACCES
            }
            _ => ENOENT,
        };
        let directory = directory.to_str().expect("UTF-8").to_owned();
        expected.push((format!("{directory}/tiny"), errno));
        search.push(directory);
    }
    search.push(directory().display().to_string());

    let search = format!("PATH={}", search.join(":"));
    let record = Record::new().recorded(["/usr/bin/env", search.as_str(), "tiny"]);
    let launches = launches(&record.file());
    assert_eq!(launches.root().failed_execs(), expected);
    assert_eq!(launches.root().programs(), ["env", "tiny"]);
    let report = report(&record.file());
    assert_eq!(report["failed_execs"], 12);
    assert_eq!(report["path_search"]["misses"], 12);
    assert_eq!(report["path_search"]["searches"], 1, "one search with twelve misses");
}

#[apply(live_test)]
#[needs(Cc)]
fn a_recorded_command_inherits_what_it_would_inherit_without_a_recorder() {
    assert_a_recorded_command_inherits_the_same();
}

#[apply(live_test)]
#[needs(Pty)]
fn a_shell_sees_that_the_recorded_command_has_stopped() {
    let record = Record::new();
    let (file, collector) = (record.file(), COLLECTOR.get().unwrap_or(&"ebpf"));
    assert_a_shell_sees_stops_through(&["record", "-q", "--collector", collector, "-o", file.to_str().expect("UTF-8")]);
}
