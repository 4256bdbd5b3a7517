//! Labels of launches by ninja: each launch by a real ninja has the target that ninja's own log
//! says. Where logs are, and which are not read, is tested with the code that reads them, and the
//! labels in a dataset on stored recordings.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::recording::read;
use crate::support::run::{Record, run};
use crate::support::{apply, live_test};

/// A build file that needs no compiler: a script, copies, a shell that execs its command, a command
/// with several launches, and edges that no hash can identify.
const BUILD: &str = r"
rule run
  command = $c
rule copy
  command = cp $in $out; :
rule respond
  command = cat $out.rsp > $out; :
  rspfile = $out.rsp
  rspfile_content = $in
build gen/two.h gen/two.c: run two.sh
  c = ./two.sh gen/two.h gen/two.c; :
build copies/b: copy build.ninja
build copies/c: copy copies/b
build stamp: run build.ninja
  c = exec touch stamp
build several: run build.ninja
  c = /bin/true; cp build.ninja several && /bin/true; :
build secret: run build.ninja
  c = ./two.sh secret other --password=hunter2; :
build twin1: run build.ninja
  c = touch twin1 twin2; :
build twin2: run build.ninja
  c = touch twin1 twin2; :
build fails: run build.ninja
  c = /bin/true; exit 1
build responded: respond build.ninja
";
const SCRIPT: &str = "#!/bin/sh\n/bin/true\ncp two.sh \"$1\"\ntouch \"$2\"\n:\n";

fn project() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("build.ninja"), BUILD).expect("a build file");
    let script = directory.path().join("two.sh");
    fs::write(&script, SCRIPT).expect("a script");
    run(Command::new("chmod").arg("+x").arg(script)).expect_code(0);
    directory
}

/// Records ninja, which exits with 1, because one of the edges fails.
fn record(directory: &Path, flags: &[&str], ninja: &[&str]) -> Record {
    let record = Record::new().flags(flags);
    let directory = directory.to_str().expect("characters");
    let shell = ["/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", directory];
    record.run(shell.iter().chain(ninja)).expect_code(1);
    record
}

/// Returns the number of launches with each target.
fn counts(file: &Path) -> BTreeMap<String, u64> {
    let report = read(&["report", "--json", "--by", "label:target"], file).json();
    let groups = report["commands"].as_array().expect("groups").iter();
    groups
        .map(|group| {
            let command = group["command"].as_str().expect("a name");
            (command.to_owned(), group["count"].as_u64().expect("a count"))
        })
        .collect()
}

fn assert_edges(file: &Path) {
    let counts = counts(file);
    for (target, count) in [
        // The shell, the script, and the three launches of the script.
        ("gen/two.c", 5),
        ("secret", 5),
        ("copies/b", 2),
        ("copies/c", 2),
        ("stamp", 1),
        ("several", 4),
    ] {
        assert_eq!(counts.get(target), Some(&count), "{target}: {counts:?}");
    }
    // ninja, and a shell and its program for each of four edges: both twins, the failing one, and
    // the one with a response file.
    assert_eq!(counts.get("-"), Some(&9), "{counts:?}");
    assert_eq!(counts.len(), 7, "{counts:?}");
}

#[apply(live_test)]
#[needs(Ninja)]
fn launches_by_ninja_are_labelled_with_their_edges() {
    let directory = project();
    assert_edges(&record(directory.path(), &["-q"], &["ninja", "-k0", "-j4"]).file());
}
