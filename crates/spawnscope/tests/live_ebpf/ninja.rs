//! Labels of launches by ninja: each launch by a real ninja has the target that ninja's own log says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::needs::python;
use crate::support::recording::read;
use crate::support::run::{Record, run};
use crate::support::{apply, live_test};

/// A build file that needs no compiler: a script, copies, a shell that execs its command, a command with several launches, and edges that no hash
/// can identify. All edges have an input, since `ninja -t compdb` lists only those.
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

/// Prints the id, parent, target and first command line of each launch in a dataset.
const ROWS: &str = r#"
import json, pyarrow.dataset, sys
read = lambda name: pyarrow.dataset.dataset(f"{sys.argv[1]}/{name}", partitioning="hive").to_table().to_pylist()
launches = {row["launch"]: row for row in read("launches")}
first = {}
for row in read("execs"):
    if row["command_line"] is not None:
        first.setdefault(row["launch"], row["command_line"])
print(json.dumps([[id, row["parent"], row["target"], first.get(id, "")] for id, row in launches.items()]))
"#;

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
    // ninja, and a shell and its program for each of four edges: both twins, the failing one, and the one with a response file.
    assert_eq!(counts.get("-"), Some(&9), "{counts:?}");
    assert_eq!(counts.len(), 7, "{counts:?}");
}

#[apply(live_test)]
#[needs(Ebpf, Ninja)]
fn launches_by_ninja_are_labelled_with_their_edges() {
    let directory = project();
    assert_edges(&record(directory.path(), &["-q"], &["ninja", "-k0", "-j4"]).file());
}

#[apply(live_test)]
#[needs(Ebpf, Ninja)]
fn the_log_of_another_directory_is_found() {
    let directory = project();
    let build = fs::read_to_string(directory.path().join("build.ninja")).expect("the build file");
    fs::write(directory.path().join("other.ninja"), format!("builddir = out\n{build}")).expect("a build file");
    let parent = directory.path().parent().expect("a parent");
    let name = directory.path().file_name().and_then(|name| name.to_str());
    let name = name.expect("a name");
    let ninja = ["ninja", "-k0", "-C", name, "-f", "other.ninja"];
    assert_edges(&record(parent, &["-q"], &ninja).file());
    assert!(directory.path().join("out/.ninja_log").exists() && !directory.path().join(".ninja_log").exists());
}

#[apply(live_test)]
#[needs(Ebpf, Ninja)]
fn without_a_readable_log_there_are_no_edges() {
    let directory = project();
    // ninja refuses to build with a log that it cannot read, so the build replaces the log.
    let script = "ninja -k0; rm .ninja_log; mkfifo .ninja_log; false";
    let build = format!("{BUILD}\nbuild gone: run stamp several\n  c = rm .ninja_log; mkfifo .ninja_log\n");
    fs::write(directory.path().join("build.ninja"), build).expect("a build file");
    let counts = counts(&record(directory.path(), &["-q"], &["sh", "-c", script]).file());
    assert_eq!(counts.len(), 1, "{counts:?}");
}

/// Returns the output of each command according to ninja: its own list of commands, and the hashes in its log.
fn edges_by_ninja(directory: &Path) -> BTreeMap<String, Option<String>> {
    let log = fs::read_to_string(directory.join(".ninja_log")).expect("ninja's log");
    let mut outputs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut hashes = BTreeMap::new();
    for line in log.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        outputs.entry(fields[4]).or_default().insert(fields[3]);
        hashes.insert(fields[3], fields[4]);
    }
    let listed = run(Command::new("ninja").current_dir(directory).args(["-t", "compdb", "run", "copy", "respond"]));
    let listed = listed.expect_code(0).json();
    let mut edges = BTreeMap::new();
    for edge in listed.as_array().expect("edges") {
        let [output, command] = ["output", "command"].map(|key| edge[key].as_str().expect("a text"));
        let hash = hashes.get(output);
        let first = hash.and_then(|hash| outputs[hash].first());
        let first = first.map(|output| (*output).to_owned());
        // A command that two edges have belongs to neither.
        let edge = edges.entry(command.to_owned());
        edge.and_modify(|edge| *edge = None).or_insert(first);
    }
    edges
}

#[apply(live_test)]
#[needs(Ebpf, Ninja, Parquet)]
fn the_target_of_each_launch_in_a_dataset_is_what_the_log_of_ninja_says() {
    let directory = project();
    let record = record(directory.path(), &["-q", "--label", "job=x"], &["ninja", "-k0", "-j4"]);
    let dataset = directory.path().join("fleet");
    let output = dataset.to_str().expect("characters");
    read(&["export", "--format", "parquet", "-o", output], &record.file());
    let rows = run(Command::new(python()).args(["-c", ROWS]).arg(&dataset)).expect_code(0);
    let rows: Vec<(i64, Option<i64>, Option<String>, String)> = serde_json::from_slice(&rows.stdout).expect("rows");
    let targets: BTreeMap<i64, &Option<String>> = rows.iter().map(|row| (row.0, &row.2)).collect();
    let edges = edges_by_ninja(directory.path());
    let mut checked = 0;
    for (_, parent, target, line) in &rows {
        let words = shlex::split(line).expect("a quoted line");
        let edge = words.get(2).filter(|_| words[..2] == ["/bin/sh", "-c"]);
        // The password is masked in the recording.
        let edge = edge.map(|command| command.replace("***", "hunter2"));
        match edge.and_then(|command| edges.get(&command)) {
            Some(Some(output)) if output == "responded" => assert_eq!(*target, None, "{line}"),
            Some(output) => {
                checked += 1;
                assert_eq!(target, output, "{line}");
            }
            None => {
                let inherited = parent.and_then(|parent| targets.get(&parent).copied());
                assert_eq!(Some(target), inherited.or(Some(&None)), "{line}");
            }
        }
    }
    assert_eq!(checked, 9, "edges: {edges:?}");
}
