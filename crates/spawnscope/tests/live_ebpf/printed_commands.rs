//! Checks that the report of `record` fits a screen, and that the commands printed by `report` and
//! `advise` run as printed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::prelude::*;

/// A script with several findings, a line to select, and more commands than the table has rows.
const SCRIPT: &str = "\
for i in {1..60}; do
    d=$(dirname \"/a/b $i\")
    echo \"$i\" | sed s/1/2/ >/dev/null
    sh -c 'true'
done
ls >/dev/null; cat /dev/null; uname >/dev/null; touch x; rm x; date >/dev/null; id >/dev/null
";

#[apply(live_test)]
fn printed_commands_run_as_printed_and_reports_fit_a_screen() {
    let record = Record::new();
    let script = record.directory().join("it's mine.sh");
    fs::write(&script, SCRIPT).expect("a script");
    let finished =
        run(record.command(["bash".as_ref(), script.as_os_str()]).current_dir(record.directory())).expect_code(0);
    let errors = finished.errors();
    let ends = errors.ends_with("; the command exited with status 0\n");
    assert!(ends && errors.lines().count() <= 50, "{errors}");
    let file = record.directory().join("it's a recording.db");
    fs::rename(record.file(), &file).expect("the recording has another name");

    let texts = [
        vec!["report"],
        vec!["report", "--full", "--top", "2"],
        vec!["report", "--by", "line", "--top", "1"],
        vec!["advise", "--all"],
    ];
    let mut printed = Vec::new();
    for arguments in texts {
        let text = read(&arguments, &file);
        printed.extend(text.output().lines().filter_map(command).map(str::to_owned));
    }
    assert!(printed.iter().any(|line| line.starts_with("spawnscope whatif ")), "{printed:?}");
    for line in &printed {
        run_as_printed(line, record.directory());
    }
}

/// Returns the command in a printed line, if there is one.
fn command(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("try: ").or_else(|| line.starts_with("spawnscope ").then_some(line))
}

fn run_as_printed(line: &str, directory: &Path) {
    let programs = Path::new(SPAWNSCOPE).parent().expect("the program is in a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(directory);
    let finished = run(shell.env("PATH", format!("{}:{path}", programs.display())));
    assert_eq!(finished.code(), 0, "{line}: {}", finished.errors());
}
