//! Where `html` writes its page, and what opens it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{SampleRecording, failure, stdout};
use crate::texts::assert_contains;

fn html_in(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    // PATH contains only the directory of the test, so that no real xdg-open is found.
    command.arg("html").args(arguments);
    command.current_dir(directory).env("PATH", directory);
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_page_is_a_private_file_that_can_be_written_again() {
    let sample = SampleRecording::new();
    let directory = sample.path().parent().unwrap().to_owned();
    let recording = sample.word();
    for _ in 0..2 {
        let output = html_in(&directory, &[&recording]);
        let expected = "spawnscope: wrote report.html: open it in a browser\n";
        assert_eq!(message(&output), expected);
        assert!(output.status.success() && output.stdout.is_empty());
    }
    let page = directory.join("report.html");
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let written = fs::read_to_string(page).unwrap();
    assert_eq!(written, stdout(&["html", "-o", "-", &recording]));
    assert!(written.starts_with("<!doctype html>\n"), "{written:.100}");
    assert!(written.ends_with("</html>"));
}

#[test]
fn open_passes_the_absolute_path_to_xdg_open() {
    let sample = SampleRecording::new();
    let directory = sample.path().parent().unwrap().canonicalize().unwrap();
    let recording = sample.word();
    let without_opener = html_in(&directory, &["--open", "--output=-page.html", &recording]);
    assert!(without_opener.status.success() && directory.join("-page.html").exists());
    let parts = ["found no browser: open /", "/-page.html yourself"];
    assert_contains(&message(&without_opener), parts);
    let opener = directory.join("xdg-open");
    fs::write(&opener, "#!/bin/sh\nprintf '%s\\n' \"$@\" > opened\n").unwrap();
    fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
    let output = html_in(&directory, &["--open", "--output=-page.html", &recording]);
    assert!(output.status.success(), "{}", message(&output));
    let opened = fs::read_to_string(directory.join("opened")).unwrap();
    assert_eq!(opened, format!("{}\n", directory.join("-page.html").display()));
}

#[test]
fn standard_output_cannot_be_opened() {
    let sample = SampleRecording::new();
    let message = failure(&["html", "--open", "-o", "-", &sample.word()]);
    assert!(message.contains("--open needs a file"), "{message}");
}
