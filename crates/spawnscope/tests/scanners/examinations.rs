//! The doctor and the lab while a real scanner runs. The doctor names the daemon, whose fanotify
//! marks it finds. Whether a scanner is a problem depends on its delay, which a busy machine can
//! hide (fapolicyd takes a tenth of a millisecond). `live_doctor` tests that with a scanner that
//! takes 20 ms.

use crate::examination::Examination;
use crate::scanned_directory::ScannedDirectory;
use crate::support::prelude::*;

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn the_doctor_names_fapolicyd_by_its_marks() {
    let examination = examine_under("fapolicyd");
    examination.expect_any(&["fapolicyd", "holds fanotify permission marks", "leave protection on"]);
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn the_doctor_names_clamonacc_by_its_marks_with_its_product() {
    let examination = examine_under("clamonacc");
    examination.expect_any(&["clamonacc", "ClamAV on-access", "holds fanotify permission marks", "responsible"]);
}

/// Runs the doctor while this scanner watches the temporary directory.
fn examine_under(scanner: &'static str) -> Examination {
    let scanned = ScannedDirectory::new(scanner);
    Examination::from_output(&run(&mut scanned.spawnscope(&["doctor", "--json", "scanners"])))
}

/// ClamAV scans at each open, so a second launch is not faster than the first one, but a launch
/// from memory is.
#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn a_scanner_that_checks_each_launch_delays_the_second_but_none_from_memory() {
    let scanned = ScannedDirectory::new("clamonacc");
    let bench = ["bench", "--quick", "--seconds", "2", "--json", "first-launch"];
    let report = run(&mut scanned.spawnscope(&bench)).expect_code(0).json();
    let rows = report["experiments"][0]["rows"].as_array().expect("rows");
    let second = |program: &str| {
        let row = rows.iter().find(|row| row["program"] == program).expect("a row");
        row["second_ns"]["median"].as_f64().expect("a median")
    };
    assert!(second("tiny") > 2.0 * second("tiny, in memory"), "{rows:?}");
}
