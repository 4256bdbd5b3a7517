//! The doctor while a real scanner runs: it names the daemon, whose fanotify marks it finds. Whether a scanner is a problem depends on its
//! delay, which a busy machine can hide (fapolicyd takes a tenth of a millisecond). `live_doctor` tests that with a scanner that takes 20 ms.

use crate::examination::Examination;
use crate::scanned_directory::ScannedDirectory;
use crate::support::run::run;
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
    examination.expect_any(&["clamonacc", "ClamAV on-access", "holds fanotify permission marks", "responsible"]);
}

/// Runs the doctor while this scanner watches the temporary directory.
fn examine_under(scanner: &'static str) -> Examination {
    let scanned = ScannedDirectory::new(scanner);
    Examination::from_output(&run(&mut scanned.spawnscope(&["doctor", "--json", "scanners"])))
}
