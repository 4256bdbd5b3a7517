//! Scanners that are products: fapolicyd, and ClamAV's on-access scanner with one signature. Their packages are unpacked into a folder
//! of the test's and run in namespaces of its own (`behind_daemon.sh`); nothing is installed.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::examined::Examined;
use crate::support::LiveTest;
use crate::support::needs::Need;
use crate::support::run::{SPAWNSCOPE, run};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/live_doctor/behind_daemon.sh");

pub fn tests() -> Vec<LiveTest> {
    vec![
        LiveTest {
            name: "fapolicyd_is_named_by_its_marks",
            needs: &[Need::Packages],
            run: fapolicyd,
        },
        LiveTest {
            name: "clamonacc_is_named_by_its_marks_with_its_product",
            needs: &[Need::Packages],
            run: clamonacc,
        },
    ]
}

fn fapolicyd() {
    let examined = behind("fapolicyd", "fapolicyd");
    examined.expect("problem", &["fapolicyd", "holds fanotify marks", "leave protection on"]);
}

fn clamonacc() {
    let examined = behind("clamonacc", "clamav-daemon");
    examined.expect(
        "problem",
        &["clamonacc", "ClamAV on-access", "holds fanotify marks", "owner"],
    );
}

/// What the doctor finds where that daemon of that package scans temporary files.
fn behind(daemon: &str, package: &str) -> Examined {
    let packages = tempfile::tempdir().expect("a temporary directory");
    fetch(packages.path(), package);
    let folder = tempfile::tempdir().expect("a temporary directory");
    let mut command = Command::new("unshare");
    command
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            SCRIPT,
            daemon,
        ])
        .args([packages.path(), folder.path()])
        .args([SPAWNSCOPE, "doctor", "--json", "--check", "scanners"])
        .env_remove("LD_LIBRARY_PATH");
    Examined::of(&run(&mut command))
}

/// Gets a package, and the libraries it needs that are not installed here, into a folder.
fn fetch(folder: &Path, package: &str) {
    let mut wanted = BTreeSet::from([package.to_owned()]);
    let mut unseen = vec![package.to_owned()];
    while let Some(package) = unseen.pop() {
        for library in libraries(&package) {
            let is_installed = run(Command::new("dpkg-query").args(["--status", &library]))
                .status
                .success();
            if !is_installed && wanted.insert(library.clone()) {
                unseen.push(library);
            }
        }
    }
    let mut download = Command::new("apt-get");
    download
        .args(["download", "-q"])
        .args(wanted.iter().map(OsStr::new))
        .current_dir(folder);
    run(&mut download).expect_code(0);
}

fn libraries(package: &str) -> Vec<String> {
    let depends = run(Command::new("apt-cache").args(["depends", "--important", package])).expect_code(0);
    let named = depends.output();
    let names = named.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    names
        .filter(|name| name.starts_with("lib"))
        .map(str::to_owned)
        .collect()
}
