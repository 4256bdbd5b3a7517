//! Variables in the user's environment do not change what the experiments measure.

use std::os::unix::fs::symlink;

use crate::bench::{bench_command, notes, rows, rows_with};
use crate::support::run::run;
use crate::support::{apply, live_test};

/// With these variables, the loader of each program writes a log file that names the program.
#[apply(live_test)]
fn loader_variables_are_removed_for_launched_programs() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = directory.path().join("written");
    std::fs::create_dir(&written).expect("a directory");
    symlink("/usr/bin/true", directory.path().join("true")).expect("a link");
    let mut command = bench_command(&["--json", "loader", "child-kind"]);
    command.env("PATH", directory.path()).env("LD_BIND_NOW", "1");
    command.env("LD_DEBUG", "files").env("LD_DEBUG_OUTPUT", written.join("by"));
    let report = run(&mut command).expect_code(0).json();
    let [loader, kinds] = [0, 1].map(|number| &report["experiments"][number]);
    assert_eq!(rows(loader).len(), 4, "{loader}");
    assert!(!rows_with(kinds, &[("child", "true")]).is_empty());
    for experiment in [loader, kinds] {
        let text = notes(experiment);
        let expected = "removed from the environment of launched programs: LD_BIND_NOW, LD_DEBUG, LD_DEBUG_OUTPUT";
        assert!(text.contains(expected), "{text}");
    }
    let files = std::fs::read_dir(&written).expect("the directory").map(|file| {
        let path = file.expect("a file").path();
        String::from_utf8_lossy(&std::fs::read(path).expect("its content")).into_owned()
    });
    let files: Vec<String> = files.collect();
    assert!(cfg!(not(target_env = "gnu")) || !files.is_empty(), "bench itself keeps the variables");
    let by_true = format!("transferring control: {}/true", directory.path().display());
    assert!(!files.iter().any(|text| text.contains(&by_true)), "{files:?}");
}
