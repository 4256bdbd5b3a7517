//! Descriptors that are given by the parent's number, without ownership, and standard error that goes to standard output.

use std::fs;
use std::os::fd::{AsRawFd, RawFd};

use vspawn::{Command, Stage, Stdio};

/// A number that is never open, since it exceeds the limit of any table.
const NOT_OPEN: RawFd = i32::MAX;

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_number_means_the_parents_file_with_that_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let file = fs::File::create(&path).unwrap();
    let mut command = shell("echo heard; echo failed >&2");
    command.stdout(Stdio::number(file.as_raw_fd())).stderr(Stdio::stdout());
    assert!(command.status().unwrap().success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "heard\nfailed\n");
}

#[test]
fn standard_error_shares_the_pipe_of_standard_output() {
    let mut command = shell("echo one; echo two >&2; echo three");
    let output = command.stderr(Stdio::stdout()).output().unwrap();
    assert_eq!(output.stdout, b"one\ntwo\nthree\n");
    assert_eq!(output.stderr, b"");
}

#[test]
fn standard_error_follows_standard_output_to_dev_null() {
    let mut command = shell("readlink /proc/self/fd/2 >&9");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let file = fs::File::create(&path).unwrap();
    command.stdout(Stdio::null()).stderr(Stdio::stdout()).fd(9, file);
    assert!(command.status().unwrap().success());
    assert_eq!(fs::read_to_string(&path).unwrap(), "/dev/null\n");
}

#[test]
fn a_kept_descriptor_survives_the_closing_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let (kept, other) = (
        fs::File::create(directory.path().join("kept")).unwrap(),
        fs::File::create(directory.path().join("other")).unwrap(),
    );
    let open = format!("test -e /proc/self/fd/{}", kept.as_raw_fd());
    let closed = format!("test ! -e /proc/self/fd/{}", other.as_raw_fd());
    let mut command = shell(&format!("{open} && {closed}"));
    command.close_others(true).keep(kept.as_raw_fd());
    assert!(command.status().unwrap().success());
}

#[test]
fn a_number_that_is_not_open_is_reported() {
    let error = shell(":").stdin(Stdio::number(NOT_OPEN)).spawn().unwrap_err();
    assert_eq!((error.stage(), error.raw_os_error()), (Stage::Dup, libc::EBADF));
    assert_eq!(error.action(), "dup 2147483647 to 0");
    let error = shell(":").stdin(Stdio::number(-1)).spawn().unwrap_err();
    assert_eq!((error.stage(), error.raw_os_error()), (Stage::Prepare, libc::EINVAL));
}
