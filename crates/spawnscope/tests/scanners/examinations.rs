//! The doctor while a scanner runs: it names the daemon by its fanotify marks. Whether it is a problem depends on what it costs (fapolicyd
//! takes a tenth of a millisecond), which a busy machine can hide; the tests
//! with a daemon that waits for 20 ms cover that.

use std::process::Command;

use crate::examination::Examination;
use crate::scanned_directory::ScannedDirectory;
use crate::support::run::{SPAWNSCOPE, run};
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn the_doctor_names_fapolicyd_by_its_marks() {
    let examination = examination("fapolicyd");
    examination.expect_any(&["fapolicyd", "holds fanotify permission marks", "leave protection on"]);
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify, Scanners)]
fn the_doctor_names_clamonacc_by_its_marks_with_its_product() {
    let examination = examination("clamonacc");
    examination.expect_any(&[
        "clamonacc",
        "ClamAV on-access",
        "holds fanotify permission marks",
        "responsible",
    ]);
}

/// What the doctor finds where temporary files are scanned.
fn examination(scanner: &'static str) -> Examination {
    let scanned = ScannedDirectory::new(scanner);
    let launcher = scanned.launcher();
    let mut command = Command::new(&launcher[0]);
    command
        .args(&launcher[1..])
        .arg("env")
        .arg(format!("TMPDIR={}", scanned.watched().display()))
        .args([SPAWNSCOPE, "doctor", "--json", "scanners"])
        .env_remove("LD_LIBRARY_PATH");
    Examination::from_output(&run(&mut command))
}
