//! Records a build that runs new binaries while a scanner checks them. The report names the scanner
//! that the build waited for.

use std::path::Path;

use serde_json::Value;

use crate::scanned_directory::{SCANNERS, ScannedDirectory};
use crate::support::recording::{self, read};
use crate::support::run::Record;
use crate::support::workloads::word;
use crate::support::{apply, live_test};

/// The number of binaries that the build creates and runs.
const FRESH: u64 = 20;

/// A script that copies a binary many times, and runs each copy once.
const BUILD: &str = "for ((n = 0; n < $2; n++)); do cp \"$0\" \"$1/fresh$n\"; \"$1/fresh$n\"; done";

/// Records the build in this directory. Returns the recording and its advice.
fn advice(scanned: &ScannedDirectory, directory: &str) -> (Record, Vec<Value>) {
    let launcher = scanned.launcher();
    let launcher: Vec<&str> = launcher.iter().map(String::as_str).collect();
    let record = Record::new().through(&launcher);
    let (tiny, fresh) = (word("tiny"), FRESH.to_string());
    record.run(["bash", "-c", BUILD, &tiny, directory, &fresh]).expect_code(0);
    let printed = recording::advice(&record.file());
    (record, printed)
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn a_build_of_fresh_binaries_waits_in_exec_for_the_scanner() {
    for scanner in SCANNERS {
        let scanned = ScannedDirectory::new(scanner);
        let (record, printed) = advice(&scanned, &scanned.watched().display().to_string());
        // fapolicyd takes so little time that there may be no advice.
        if let Some(advice) = advice_of_rule(&printed, "scanner") {
            assert!(advice["title"].to_string().contains(scanner), "{advice:#}");
            assert!(advice["count"].as_u64() >= Some(FRESH), "{advice:#}");
        } else {
            assert_ne!(scanner, "clamonacc", "{printed:#?}");
        }
        let printed = read(&["report", "--full"], &record.file());
        let line = format!("waiting for a permission scanner: {scanner}");
        assert!(printed.output().contains(&line), "{}", printed.output());
        assert_waits_in_exec(&record, &scanned);
    }
}

/// Checks that every new binary waited for permission within its own exec.
fn assert_waits_in_exec(record: &Record, scanned: &ScannedDirectory) {
    const EXECVE: u64 = 59;
    let printed = read(&["export", "--format", "ndjson"], &record.file()).output();
    let launches = printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let fresh = launches.filter(|launch| {
        let path = launch["execs"][0]["path"].as_str();
        path.is_some_and(|path| Path::new(path).starts_with(scanned.watched()))
    });
    let fresh: Vec<Value> = fresh.collect();
    assert_eq!(fresh.len() as u64, FRESH, "{printed}");
    for launch in fresh {
        let waits = launch["waits"].as_array().expect("an array");
        assert!(
            waits.iter().any(|wait| wait["object"]["kind"] == "permission" && wait["syscall"] == EXECVE),
            "{launch:#}"
        );
    }
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn a_build_outside_of_the_scanned_directory_reports_no_scanner() {
    for scanner in SCANNERS {
        let scanned = ScannedDirectory::new(scanner);
        let elsewhere = tempfile::tempdir().expect("a temporary directory");
        let (_, printed) = advice(&scanned, &elsewhere.path().display().to_string());
        assert_eq!(advice_of_rule(&printed, "scanner"), None, "{scanner}");
    }
}

/// Returns the first advice of a rule.
fn advice_of_rule<'a>(findings: &'a [Value], rule: &str) -> Option<&'a Value> {
    findings.iter().find(|advice| advice["rule"] == rule)
}
