//! Common programs that launch others through a shell have the same output and status with and
//! without the library. A program that is not installed is skipped.

use std::process::{Command, Stdio};

use crate::build::library;

/// Runs a program with and without the library, and checks that the results are the same.
fn assert_same_result(program: &str, arguments: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let [without, with] = ["0", "1"].map(|with| {
        Command::new("timeout")
            .arg("60")
            .arg(program)
            .args(arguments)
            .current_dir(directory.path())
            .env("LD_PRELOAD", library())
            .env("SPAWNSCOPE_ACCEL", with)
            .stdin(Stdio::null())
            .output()
            .expect("timeout starts")
    });
    if without.status.code() == Some(127) {
        eprintln!("SKIPPED: {program} is not installed");
        return;
    }
    assert_eq!(without, with, "{program}");
    assert!(!with.stdout.is_empty(), "{with:?}");
}

#[test]
fn python_has_the_same_result() {
    assert_same_result(
        "python3",
        &[
            "-c",
            r#"
import os, subprocess
for text in ["expr 1 + 2", "ls /nonexistent 2>&1", "missing", "cat '/proc/self/comm'", "sleep 0", "exit 7", 'grep "c" /proc/self/comm']:
    done = subprocess.run(text, shell=True, capture_output=True)
    print(done.returncode, done.stdout, done.stderr, os.system(text), os.popen(text).read(), flush=True)
"#,
        ],
    );
}

#[test]
fn perl_has_the_same_result() {
    assert_same_result(
        "perl",
        &[
            "-e",
            r#"
$| = 1;
for my $text ("expr 1 + 2", "expr '1' + 2", "missing 'a'", "ls \"/nonexistent\"", "exit 7") {
    print system($text), "|", `$text`, "|$?\n";
}
"#,
        ],
    );
}

#[test]
fn make_has_the_same_result() {
    let makefile = "all:\n\t@expr \"1\" + 2\n\t-@ls \"/nonexistent\"\n\t@echo done; expr 3\n\t@cat '/proc/self/comm'\n";
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("Makefile");
    std::fs::write(&file, makefile).expect("a file");
    assert_same_result("make", &["-f", file.to_str().expect("a path")]);
}

#[test]
fn node_has_the_same_result() {
    assert_same_result(
        "node",
        &[
            "-e",
            r#"
const { execSync, spawnSync } = require('child_process');
for (const text of ["expr 1 + 2", "expr '3' + 4", "exit 7", "missing", "cat '/proc/self/comm'"]) {
    const done = spawnSync(text, { shell: true });
    console.log(done.status, String(done.stdout), String(done.stderr));
}
console.log(String(execSync("expr '3' + 4")));
"#,
        ],
    );
}

#[test]
fn php_has_the_same_result() {
    assert_same_result(
        "php",
        &[
            "-r",
            r#"foreach (["expr 1 + 2", "missing", "exit 7", "ls '/nonexistent'"] as $text) { exec($text, $lines, $status); print_r([$lines, $status]); }"#,
        ],
    );
}
