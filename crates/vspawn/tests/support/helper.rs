//! Builds and runs helper.c, a program that lists its descriptors. The process that starts all
//! tests builds it once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(concat!("vspawn-helper-", env!("CARGO_CRATE_NAME")))
}

/// Compiles the helper. Without a compiler, tests that need the helper are skipped.
pub fn build() {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/helper.c");
    if let Ok(status) = Command::new("cc").args(["-O1", "-Wall", "-Werror", "-o"]).arg(path()).arg(source).status() {
        assert!(status.success(), "cc helper.c");
    }
}

/// Runs the helper, and returns the targets of its descriptors by number.
pub fn run_and_list_descriptors(command: &mut vspawn::Command, report: &Path) -> BTreeMap<i32, String> {
    let mut child = command.arg(report).spawn().unwrap();
    drop((child.stdin.take(), child.stdout.take(), child.stderr.take()));
    assert!(child.wait().unwrap().success());
    let lines = std::fs::read_to_string(report).unwrap();
    lines.lines().filter_map(|line| line.split_once(' ').map(|(fd, to)| (fd.parse().unwrap(), to.to_owned()))).collect()
}
