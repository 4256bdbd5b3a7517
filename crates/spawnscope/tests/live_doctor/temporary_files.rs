//! Unusable directories for temporary files, and what the doctor measures nevertheless.

use crate::examination::{examine, examine_after};
use crate::support::prelude::*;

#[apply(live_test)]
#[needs(MountNs)]
fn a_full_temporary_directory_is_a_problem_and_launches_are_timed_elsewhere() {
    let mount = "mount -t tmpfs -o size=64k none \"$1\"; head -c 64k /dev/zero >\"$1/full\"; export TMPDIR=\"$1\"";
    let words = ["temporary files cannot be created", "no space left", "df -i"];
    examine_after(mount, "file-systems").expect("problem", &words);
    // The doctor looks for scanners in another directory, and still finds out that there is none.
    best_of_three(|| {
        let scanned = examine_after(mount, "scanners");
        scanned.check_silence()?;
        ok_if(!scanned.unseen().contains("first launch"), || scanned.unseen())
    });
}

#[apply(live_test)]
#[needs(MountNs)]
fn a_temporary_directory_that_is_read_only_missing_or_a_file_is_a_problem() {
    let read_only = "mount -t tmpfs -o ro none \"$1\"; export TMPDIR=\"$1\"";
    examine_after(read_only, "file-systems").expect("problem", &["read-only"]);
    for (directory, reason) in [("/dev/null", "not a directory"), ("/gone/away", "no such directory")] {
        let named = format!("TMPDIR={directory}");
        let examination = examine(["env", &named], "file-systems");
        examination.expect("problem", &[reason, directory, "unset TMPDIR"]);
    }
}
