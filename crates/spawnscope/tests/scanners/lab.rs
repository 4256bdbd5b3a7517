//! The lab while a scanner checks every launch: the experiment `first-launch` reports the scanner.

use std::process::Command;

use serde_json::Value;

use crate::scanned_directory::ScannedDirectory;
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::run::{SPAWNSCOPE, run};
use crate::support::{apply, live_test};

/// ClamAV scans at each open, so a second launch is not faster than the first one, but a launch from memory is.
#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn first_launch_reports_a_scanner_that_checks_each_launch() {
    best_of_three(|| {
        let notes = first_launch_notes();
        ok_if(notes.contains("a scanner examines every executable each time"), || {
            notes.clone()
        })
    });
}

/// Returns the notes of `first-launch` while clamonacc runs.
fn first_launch_notes() -> String {
    let scanned = ScannedDirectory::new("clamonacc");
    let launcher = scanned.launcher();
    let mut command = Command::new(&launcher[0]);
    command
        .args(&launcher[1..])
        .arg("env")
        .arg(format!("TMPDIR={}", scanned.watched().display()))
        .args([
            SPAWNSCOPE,
            "bench",
            "--quick",
            "--seconds",
            "2",
            "--json",
            "first-launch",
        ])
        .env_remove("LD_LIBRARY_PATH");
    let report: Value = serde_json::from_slice(&run(&mut command).expect_code(0).stdout).expect("JSON");
    report["experiments"][0]["notes"].to_string()
}
