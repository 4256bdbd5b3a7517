//! The lab while a scanner checks every launch: the experiment `first-launch` reports the scanner.

use crate::scanned_directory::ScannedDirectory;
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::run::run;
use crate::support::{apply, live_test};

/// ClamAV scans at each open, so a second launch is not faster than the first one, but a launch from memory is.
#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn first_launch_reports_a_scanner_that_checks_each_launch() {
    best_of_three(|| {
        let notes = first_launch_notes();
        ok_if(notes.contains("a scanner examines every executable each time"), || notes.clone())
    });
}

/// Returns the notes of `first-launch` while clamonacc runs.
fn first_launch_notes() -> String {
    let scanned = ScannedDirectory::new("clamonacc");
    let bench = ["bench", "--quick", "--seconds", "2", "--json", "first-launch"];
    let report = run(&mut scanned.spawnscope(&bench)).expect_code(0).json();
    report["experiments"][0]["notes"].to_string()
}
