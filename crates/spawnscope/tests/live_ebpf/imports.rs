//! A log of strace becomes the same tree as a recording of the same command.

use std::fs;
use std::process::Command;

use crate::support::launches::{Launch, Launches};
use crate::support::recording::launches;
use crate::support::run::{Record, run};
use crate::support::{apply, live_test};

/// Launches in all ways that a shell has, with failures.
const SCRIPT: &str = "
cd /tmp
for word in a b; do x=$(expr $word : '\\(.*\\)'); done
/bin/true | /bin/cat
python3 -S -c 'import subprocess
subprocess.run([\"true\", \"x y\"])
try: subprocess.run([\"/nowhere/missing\"])
except OSError: pass'
(exit 3)
/bin/sh -c 'kill -9 $$'
:
";

/// Describes a launch: its programs, arguments, failures and end, but no times and numbers.
fn describe(launch: &Launch) -> String {
    let json = launch.json();
    let execs = json["execs"].as_array().expect("execs");
    let execs: Vec<_> = execs.iter().map(|exec| (exec["path"].clone(), exec["argv"].clone())).collect();
    format!("{execs:?} {:?} {} {}", launch.failed_execs(), json["exit"], json["mechanism"])
}

/// Describes a launch and, indented, its children in order of creation.
fn tree(launches: &Launches, launch: &Launch, depth: usize) -> Vec<String> {
    let mut lines = vec![format!("{}{}", "  ".repeat(depth), describe(launch))];
    for child in launches.children_of(launch) {
        lines.extend(tree(launches, child, depth + 1));
    }
    lines
}

#[apply(live_test)]
#[needs(Strace, Python)]
fn an_imported_log_has_the_same_tree_as_a_recording() {
    let record = Record::new().flags(&["-q"]);
    run(&mut record.command(["/bin/sh", "-c", SCRIPT])).expect_code(0);
    let recorded = launches(&record.file());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (log, imported) = (directory.path().join("x.log"), directory.path().join("x.db"));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-ttt", "-T", "-s", "4096", "-o"]).arg(&log).args(["/bin/sh", "-c", SCRIPT]);
    run(&mut strace).expect_code(0);
    let mut import = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    run(import.arg("import").arg("-o").arg(&imported).arg(&log)).expect_code(0);
    let found = launches(&imported);
    let [expected, found] = [&recorded, &found].map(|all| tree(all, all.root(), 0));
    assert!(expected.len() > 8, "{expected:#?}");
    assert_eq!(found, expected, "{}", fs::read_to_string(&log).expect("the log"));
}
