//! Labels from the few environment variables that are recorded; no other part of an environment is
//! recorded.

use std::path::Path;

use crate::support::prelude::*;

/// A Python script that sets variables as pytest does, and one with a secret. Its first argument is
/// the size in bytes of a variable that makes the environment large.
const SUITE: &str = r#"
import os, subprocess, sys
os.environ["AAA_FILLER"] = "b" * int(sys.argv[1])
os.environ["PYTEST_CURRENT_TEST"] = "t/a.py::test_log[1] (call)"
os.environ["DEPLOY_PASSWORD"] = "hunter2-of-the-suite"
subprocess.run(["/bin/sh", "-c", "/bin/true; /bin/true; :"], check=True)
del os.environ["PYTEST_CURRENT_TEST"]
subprocess.run(["/bin/true"], check=True)
"#;

/// Returns the number of launches of each test.
fn counts_by_test(file: &Path) -> Vec<(String, u64)> {
    let report = read(&["report", "--json", "--by", "label:test"], file).json();
    let groups = report["commands"].as_array().expect("groups").iter();
    let counts = groups.map(|group| {
        let command = group["command"].as_str().expect("a name");
        (command.to_owned(), group["count"].as_u64().expect("a count"))
    });
    let mut counts: Vec<(String, u64)> = counts.collect();
    counts.sort();
    counts
}

#[apply(live_test)]
#[needs(Python)]
fn launches_have_the_name_of_their_test_and_no_secret_is_recorded() {
    for filler in ["0", "6000", "100000"] {
        let record = Record::new().flags(&["-q"]);
        let suite = ["/usr/bin/python3", "-S", "-c", SUITE, filler];
        run(record.command(suite).env("SECRET_OF_CI", "hunter2-of-ci")).expect_code(0);
        let expected = [("-".to_owned(), 2), ("t/a.py::test_log[1]".to_owned(), 3)];
        assert_eq!(counts_by_test(&record.file()), expected, "filler {filler}");
        // The text of the script is a recorded argument, but does not contain these strings.
        for secret in ["hunter2-of-ci", "AAA_FILLER=", "DEPLOY_PASSWORD=", "SECRET_OF_CI"] {
            assert!(!contains(&record.file(), secret), "{secret} is stored, filler {filler}");
        }
    }
}

#[apply(live_test)]
fn without_a_build_tool_no_environment_is_recorded() {
    let record = Record::new().flags(&["-q"]);
    let command = ["/bin/sh", "-c", "/bin/true; :"];
    run(record.command(command).env("CARGO_PKG_NAME", "inherited")).expect_code(0);
    // The name alone is in the documentation of the format, which every recording has.
    assert!(!contains(&record.file(), "CARGO_PKG_NAME=inherited"));
}
