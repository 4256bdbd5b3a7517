//! Tests of the checks `search-path` and `file-systems`: unusable or slow directories of PATH, and
//! kinds of file systems.

use std::path::PathBuf;

use spawnscope_data::event::Nanos;
use spawnscope_doctor::Measured;

use crate::tree::{
    Tree, diagnose, expect_note, expect_note_with, expect_nothing, expect_problem, expect_problem_with,
    usual_measurements,
};

const MOUNTS: &str = "\
1 0 0:1 / / rw - ext4 /dev/vda rw
2 1 0:2 / /net rw - nfs4 server:/ rw
3 1 0:3 / /tmp rw,nosuid - tmpfs tmpfs rw
";

pub fn tree_with_mounts() -> Tree {
    let tree = Tree::new()
        .directory("usr/bin")
        .directory("net/bin")
        .directory("home/me")
        .directory("tmp")
        .directory("var/tmp");
    tree.file("proc/self/mountinfo", MOUNTS)
}

pub fn with_lookups(times: &[(&str, Option<u64>)]) -> Measured {
    let times = times.iter().map(|(directory, time)| (PathBuf::from(directory), time.map(Nanos)));
    Measured { lookups: times.collect(), ..usual_measurements() }
}

#[test]
fn dead_repeated_relative_and_slow_path_directories_are_reported() {
    let tree = tree_with_mounts();
    let dead = tree.machine().with_variable("PATH", "/usr/bin:/gone:/usr/bin");
    expect_note("search-path", &dead, &["2 of 3 directories", "missing: /gone", "repeated: /usr/bin"]);
    let many = (0..9).map(|number| format!("/gone/{number}:")).collect::<String>() + "/usr/bin";
    expect_problem("search-path", &tree.machine().with_variable("PATH", many), &["9 of 10 directories"]);
    let relative = tree.machine().with_variable("PATH", "/usr/bin::bin");
    expect_problem("search-path", &relative, &["'', bin"]);
    let machine = tree.machine().with_variable("PATH", "/net/bin:/usr/bin");
    let slow = with_lookups(&[("/net/bin", Some(300_000)), ("/usr/bin", Some(900))]);
    let finding = expect_problem_with("search-path", &machine, &slow, &["/net/bin: 300 us", "a network file system"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(300_000));
    // If all system calls are slow, the directory is not the cause.
    let slow = Measured { system_call: Some(Nanos(16_000)), ..slow };
    expect_note_with("search-path", &machine, &slow, &["/net/bin: 300 us"]);
    let quick = with_lookups(&[("/net/bin", Some(2_000)), ("/usr/bin", Some(900))]);
    expect_note_with("search-path", &machine, &quick, &["/net/bin: 2.00 us"]);
    let hung = with_lookups(&[("/net/bin", None)]);
    expect_problem_with("search-path", &machine, &hung, &["no answer"]);
}

#[test]
fn a_short_and_local_path_has_no_findings() {
    let tree = tree_with_mounts();
    let machine = tree.machine().with_variable("PATH", "/usr/bin");
    expect_nothing("search-path", &machine, &with_lookups(&[("/usr/bin", Some(900))]));
}

#[test]
fn remote_file_systems_are_reported() {
    let tree = tree_with_mounts();
    let machine = tree.machine().with_variable("TMPDIR", "/var/tmp");
    let remote = machine.clone().in_directory("/net/build");
    let words = ["the working directory", "nfs4"];
    expect_problem("file-systems", &remote, &words);
    expect_nothing("file-systems", &machine.in_directory("/home/me"), &usual_measurements());
    assert_eq!(diagnose("file-systems", &Tree::new().machine(), &usual_measurements()).not_examined.len(), 1);
}
