//! Tests of doctor's check of git: the hooks and monitors of a repository, and the time of
//! `git status`.

use std::process::Command;

use crate::attempts::best_of_three;
use crate::launched::{find_problem_longer_than, installed_machine, with_little_time, with_programs};
use crate::tree::{Tree, diagnose, expect, expect_nothing, expect_problem, usual_measurements};

fn repository() -> Tree {
    let tree = Tree::new();
    git(&tree, &["init", "-q"]);
    tree
}

fn git(tree: &Tree, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(tree.root()).env("HOME", tree.root()).env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(git.status().unwrap().success());
}

fn configure(tree: &Tree, key: &str, value: &str) {
    git(tree, &["config", key, value]);
}

#[test]
fn frequent_hooks_of_a_repository_are_problems() {
    let tree = repository();
    // Programs that git never starts, and a hook that its user expects to run.
    let tree = ["fsmonitor-watchman", "helper", "pre-commit"].into_iter().fold(tree, |tree, name| {
        let file = format!(".git/hooks/{name}");
        tree.file(&file, "#!/bin/sh\n").mode(&file, 0o755)
    });
    assert!(diagnose("git", &installed_machine(&tree), &usual_measurements()).findings.is_empty());
    let hooks = tree.file(".git/hooks/post-index-change", "#!/bin/sh\n").mode(".git/hooks/post-index-change", 0o755);
    expect_problem("git", &installed_machine(&hooks), &["post-index-change", "nearly every command"]);
}

#[test]
fn a_monitor_that_is_a_program_is_timed() {
    let tree = repository().file("monitor", "#!/bin/sh\n/bin/sleep 0.05\nexit 1\n").mode("monitor", 0o755);
    configure(&tree, "core.fsmonitor", tree.root().join("monitor").to_str().unwrap());
    let finding = find_problem_longer_than("git", &installed_machine(&tree), &["core.fsmonitor="], 40_000_000);
    assert!(finding.fix[0].contains("core.fsmonitor"), "{finding:?}");
    configure(&tree, "core.fsmonitor", "TRUE");
    expect_nothing("git", &installed_machine(&tree), &usual_measurements());
}

#[test]
fn a_slow_git_status_is_reported_without_blaming_its_monitor() {
    let tree = repository().file("monitor", "#!/bin/sh\nexit 1\n").mode("monitor", 0o755);
    configure(&tree, "core.fsmonitor", tree.root().join("monitor").to_str().unwrap());
    let tree = tree.file("file", "text\n").file(".gitattributes", "file filter=slow\n");
    git(&tree, &["add", "file"]);
    configure(&tree, "filter.slow.clean", "sleep 60");
    // The size is unchanged, so that git must run the filter to see the change.
    let tree = tree.file("file", "TEXT\n");
    best_of_three(|| {
        let found = diagnose("git", &installed_machine(&tree), &with_little_time()).findings;
        let titles: Vec<&str> = found.iter().map(|finding| finding.title.as_str()).collect();
        expect(titles.iter().any(|title| title.starts_with("git status without its monitor does not finish")), &found)?;
        expect(!titles.iter().any(|title| title.contains("launches a file-system monitor")), &found)?;
        Ok(())
    });
}

#[test]
fn a_repository_that_git_refuses_is_not_examined() {
    let why = "fatal: detected dubious ownership in repository at '/x'";
    let script = format!("echo \"{why}\" >&2; exit 128");
    let (_tree, refusing) = with_programs(&[("git", &script)]);
    let broken = repository().file(".git/config", "[core\n");
    for (machine, why) in [(refusing, why), (installed_machine(&broken), "fatal: bad config")] {
        let diagnosis = diagnose("git", &machine, &usual_measurements());
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.not_examined[0].what.contains(why), "{diagnosis:?}");
    }
}

#[test]
fn a_fresh_repository_and_no_repository_have_no_findings() {
    for tree in [repository(), Tree::new()] {
        let diagnosis = diagnose("git", &installed_machine(&tree), &usual_measurements());
        assert!(diagnosis.findings.is_empty() && diagnosis.not_examined.is_empty(), "{diagnosis:?}");
    }
}
