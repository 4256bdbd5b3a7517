//! A scanner of the tests, which delays real launches on private mounts.

use std::ffi::OsStr;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::examination::{Examination, examine};
use crate::findings::{check_silence, find};
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::recording::launches;
use crate::support::run::{Record, SPAWNSCOPE, run};
use crate::support::texts::assert_contains;
use crate::support::workloads::path;
use crate::support::{apply, live_test};

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
        let finding = find(&examination, "problem", &words)?;
        let delay = finding["effect_ns"].as_u64().expect("the delay was measured");
        // The scanner sleeps this long; a busy machine only adds time.
        assert!(delay >= 15_000_000, "{finding:#}");
        assert_eq!(finding["effect_basis"], "measured");
        Ok(())
    });
}

/// If the daemon's descriptors may not be read, the launch times still show the scanner.
#[apply(live_test)]
#[needs(Fanotify, PidNs, Setpriv)]
fn without_privilege_a_scanner_is_recognised_by_launch_times() {
    let binary = tempfile::tempdir_in("/tmp").expect("a temporary directory");
    std::fs::set_permissions(binary.path(), Permissions::from_mode(0o755)).expect("chmod");
    let copied = binary.path().join("spawnscope");
    std::fs::copy(SPAWNSCOPE, &copied).expect("the binary can be copied");
    best_of_three(|| {
        let directory = tempfile::tempdir_in("/tmp").expect("a temporary directory");
        let examination = Examination::from_output(&run(&mut unprivileged_command(directory.path(), &copied)));
        find(&examination, "problem", &["an unknown program scans the file", "they queue"])?;
        assert_contains(&examination.unseen(), ["only root can read"]);
        Ok(())
    });
}

fn unprivileged_command(directory: &Path, doctor: &Path) -> Command {
    let mut command = Command::new(NEW_NAMESPACES[0]);
    command
        .args(&NEW_NAMESPACES[1..])
        .arg(path("scans_new_files"))
        .arg(directory)
        .args(["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(doctor)
        .args(["doctor", "--json", "scanners"])
        .current_dir("/");
    command
}

#[apply(live_test)]
#[needs(Ebpf, Fanotify)]
fn a_recording_of_a_build_under_a_scanner_shows_new_programs_waiting_in_exec() {
    const PROGRAMS: i64 = 20;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let build = format!("for n in $(seq {PROGRAMS}); do cp \"$0\" \"$TMPDIR/fresh$n\"; \"$TMPDIR/fresh$n\"; done");
    let program = path("scans_new_files");
    let through = [program.to_str(), directory.path().to_str()].map(|word| word.expect("paths are text"));
    let record = Record::new().through(&through);
    let tiny = path("tiny");
    record.run(["sh", "-c", &build, tiny.to_str().expect("paths are text")]).expect_code(0);
    let launches = launches(&record.file());
    let fresh = launches.all(|launch| launch.command().starts_with("fresh"));
    assert_eq!(fresh.len() as i64, PROGRAMS);
    for launch in fresh {
        let exec = launch.phase_ns("exec").expect("the exec was seen");
        assert!(exec >= 15_000_000, "{:#}", launch.json());
    }
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
        check_silence(&examination)?;
        ok_if(!examination.unseen().contains("could not be timed"), || examination.unseen())
    });
}
