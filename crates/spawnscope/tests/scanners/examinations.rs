//! The doctor while a real scanner runs: it names the daemon, whose fanotify marks it finds. Whether a scanner is a problem depends on its
//! delay, which a busy machine can hide (fapolicyd takes a tenth of a millisecond). `live_doctor` tests that with a scanner that takes 20 ms.

use std::process::Command;

use crate::examination::Examination;
use crate::scanned_directory::ScannedDirectory;
use crate::support::run::{SPAWNSCOPE, run};
use crate::support::{apply, live_test};

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
    examination.expect_any(&[
        "clamonacc",
        "ClamAV on-access",
        "holds fanotify permission marks",
        "responsible",
    ]);
}

/// Runs the doctor while this scanner watches the temporary directory.
fn examine_under(scanner: &'static str) -> Examination {
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
