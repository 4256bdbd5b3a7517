//! Where `html` writes its page, and what opens it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::{SampleRecording, failure, stdout};
use crate::run::{Finished, SPAWNSCOPE, run, write_program};

fn html_in(directory: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new(SPAWNSCOPE);
    // PATH contains only the directory of the test, so that no real xdg-open is found.
    command.arg("html").args(arguments);
    command.current_dir(directory).env("PATH", directory);
    for name in ["SUDO_UID", "SUDO_GID", "SUDO_USER"] {
        command.env_remove(name);
    }
    run(&mut command)
}

#[test]
fn the_page_is_a_private_file_that_can_be_written_again() {
    let sample = SampleRecording::new();
    let directory = sample.path().parent().unwrap().to_owned();
    let recording = sample.word();
    for _ in 0..2 {
        let finished = html_in(&directory, &[&recording]).expect_code(0);
        let expected = "spawnscope: wrote report.html: open it in a browser\n";
        assert_eq!([finished.output(), finished.errors()], ["", expected]);
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
    let without_opener = html_in(&directory, &["--open", "--output=-page.html", &recording]).expect_code(0);
    assert!(directory.join("-page.html").exists());
    without_opener.expect_errors(["found no browser: open /", "/-page.html yourself"]);
    let opener = directory.join("xdg-open");
    write_program(&opener, "#!/bin/sh\nprintf '%s\\n' \"$@\" > opened\n");
    html_in(&directory, &["--open", "--output=-page.html", &recording]).expect_code(0);
    let opened = fs::read_to_string(directory.join("opened")).unwrap();
    assert_eq!(opened, format!("{}\n", directory.join("-page.html").display()));
}

#[test]
fn standard_output_cannot_be_opened() {
    let sample = SampleRecording::new();
    let message = failure(&["html", "--open", "-o", "-", &sample.word()]);
    assert!(message.contains("--open needs a file"), "{message}");
}
