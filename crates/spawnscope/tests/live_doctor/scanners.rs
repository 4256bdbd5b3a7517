//! A scanner of the tests, which delays real launches on private mounts.

use std::ffi::OsStr;

use crate::examination::examine;
use crate::support::prelude::*;

/// Runs a command in separate namespaces, so that no other scanner of this machine is found.
const NEW_NAMESPACES: [&str; 6] = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

#[apply(live_test)]
#[needs(Fanotify, PidNs)]
fn a_scanner_with_one_thread_is_named_with_its_delay_and_its_queue() {
    let program = path("scans_new_files");
    let words = ["test-scanner", "delays the first launch of each file", "they queue", "leave protection on"];
    best_of_three(|| {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let scanned = [program.as_os_str(), directory.path().as_os_str()];
        let examination = examine([&NEW_NAMESPACES.map(OsStr::new)[..], &scanned].concat(), "scanners");
        let finding = examination.find("problem", &words)?;
        let delay = finding["effect_ns"].as_u64().expect("the delay was measured");
        // The scanner sleeps this long; a busy machine only adds time.
        assert!(delay >= 15_000_000, "{finding:#}");
        assert_eq!(finding["effect_basis"], "measured");
        Ok(())
    });
}

#[apply(live_test)]
#[needs(MountNs, PidNs)]
fn without_a_scanner_new_files_are_launched_as_quickly_as_others() {
    let script = "mount -t tmpfs none \"$1\" && export TMPDIR=\"$1\" && shift && exec \"$@\"";
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path().to_str().expect("paths are text");
    let launcher = [&NEW_NAMESPACES[..], &["sh", "-c", script, "sh", directory]].concat();
    best_of_three(|| {
        let examination = examine(&launcher, "scanners");
        examination.check_silence()?;
        ok_if(!examination.unseen().contains("could not be timed"), || examination.unseen())
    });
}
