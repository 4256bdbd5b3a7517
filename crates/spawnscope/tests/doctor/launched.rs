//! Checks that start programs: shells, git, Python, shims. The programs are this machine's own or scripts of the test's; what they
//! read at their start is the test's.

use std::process::Command;
use std::time::Duration;

use spawnscope::doctor::{Finding, Machine, Measured, Severity};

use crate::tree::{Tree, diagnose, only, usual};

/// This machine's programs in an environment that has nothing but a home.
fn machine(tree: &Tree) -> Machine {
    Machine::at("/")
        .with_variable("PATH", "/usr/bin:/bin")
        .with_variable("HOME", tree.root())
        .in_directory(tree.root())
}

/// What a busy machine makes longer may be told now and then: it is silent when left to itself.
#[track_caller]
fn silent_at_best(id: &str, machine: &Machine) {
    let mut told: Vec<Finding> = Vec::new();
    for _ in 0..8 {
        told = diagnose(id, machine, &usual()).findings;
        if told.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("{told:#?}");
}

#[test]
fn start_up_files_of_shells_that_launch_are_told_with_their_launches() {
    let slow = Tree::new().file(
        ".bashrc",
        "for i in 1 2 3 4 5 6 7 8 9 10 11; do /bin/sleep 0.01; done\n",
    );
    let finding = only(
        "shell-start",
        &machine(&slow),
        &usual(),
        Severity::Problem,
        &["bash's start-up files", "11 processes"],
    );
    assert!(finding.effect.unwrap().span.0 > 100_000_000);
    silent_at_best(
        "shell-start",
        &machine(&Tree::new().file(".bashrc", "alias ll='ls -l'\n")),
    );
}

#[test]
fn a_shell_that_does_not_come_to_its_end_is_killed_and_told_as_unseen() {
    let hanging = Tree::new().file(".bashrc", "/bin/sleep 60\n");
    let diagnosis = diagnose("shell-start", &machine(&hanging), &usual());
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    assert!(diagnosis.unseen[0].what.contains("bash -ic"), "{diagnosis:?}");
}

#[test]
fn bash_env_is_a_problem_where_it_launches_and_a_note_where_it_does_not() {
    let tree = Tree::new().file("launching", "/bin/true; (:)\n").file("quiet", "x=1\n");
    let with = |name: &str| machine(&tree).with_variable("BASH_ENV", tree.root().join(name));
    only(
        "shell-start",
        &with("launching"),
        &usual(),
        Severity::Problem,
        &["BASH_ENV", "they launch 2 processes"],
    );
    let quiet = diagnose("shell-start", &with("quiet"), &usual()).findings;
    assert!(
        quiet.iter().all(|finding| finding.title.contains("BASH_ENV")),
        "{quiet:?}"
    );
    let posix = machine(&tree).with_variable("ENV", "/etc/shinit");
    only("shell-start", &posix, &usual(), Severity::Note, &["ENV=/etc/shinit"]);
}

#[test]
fn pythons_site_packages_are_told_when_they_take_long() {
    let tree = Tree::new().file("slow/sitecustomize.py", "import time\ntime.sleep(0.1)\n");
    let slow = machine(&tree).with_variable("PYTHONPATH", tree.root().join("slow"));
    let words = ["Python's start", "sitecustomize", "PYTHONPATH="];
    let finding = only("interpreters", &slow, &usual(), Severity::Problem, &words);
    assert!(finding.effect.unwrap().span.0 >= 90_000_000);
    silent_at_best("interpreters", &machine(&tree));
}

#[test]
fn options_that_load_code_into_interpreters_are_problems() {
    let bare = || Tree::new().machine();
    let loading = bare().with_variable("NODE_OPTIONS", "--require /opt/agent.js");
    only(
        "interpreters",
        &loading,
        &usual(),
        Severity::Problem,
        &["NODE_OPTIONS", "loads code"],
    );
    let plain = bare().with_variable("JAVA_TOOL_OPTIONS", "-Xmx1g");
    only("interpreters", &plain, &usual(), Severity::Note, &["JAVA_TOOL_OPTIONS"]);
    assert!(diagnose("interpreters", &bare(), &usual()).findings.is_empty());
}

#[test]
fn shims_are_timed_against_what_they_start() {
    let tree = Tree::new()
        .file("real/python3", "#!/bin/sh\necho Python 3\n")
        .mode("real/python3", 0o755)
        .directory(".pyenv/bin");
    let real = tree.root().join("real/python3");
    let shim = format!("#!/bin/sh\n/bin/sleep 0.05\nexec {} \"$@\"\n", real.display());
    let chooser = format!("#!/bin/sh\necho {}\n", real.display());
    let tree = tree
        .file(".pyenv/shims/python3", shim)
        .mode(".pyenv/shims/python3", 0o755)
        .file(".pyenv/bin/pyenv", chooser)
        .mode(".pyenv/bin/pyenv", 0o755);
    let path = |first: &str| format!("{}:/usr/bin:/bin", tree.root().join(first).display());
    let shimmed = machine(&tree).with_variable("PATH", path(".pyenv/shims"));
    let words = ["python3 is a shim of pyenv", "real:$PATH"];
    let finding = only("shims", &shimmed, &usual(), Severity::Problem, &words);
    assert!(finding.effect.unwrap().span.0 >= 40_000_000);
    let direct = machine(&tree).with_variable(
        "PATH",
        path("real") + &format!(":{}", tree.root().join(".pyenv/shims").display()),
    );
    assert!(diagnose("shims", &direct, &usual()).findings.is_empty());
}

fn repository() -> Tree {
    let tree = Tree::new();
    let initialised = Command::new("git")
        .args(["init", "-q"])
        .current_dir(tree.root())
        .env("HOME", tree.root())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    assert!(initialised.unwrap().success());
    tree
}

fn configure(tree: &Tree, key: &str, value: &str) {
    let mut git = Command::new("git");
    git.args(["config", key, value])
        .current_dir(tree.root())
        .env("HOME", tree.root());
    assert!(git.status().unwrap().success());
}

#[test]
fn hooks_of_a_repository_are_told_and_frequent_ones_are_problems() {
    let tree = repository();
    let hooks = tree
        .file(".git/hooks/pre-commit", "#!/bin/sh\n")
        .mode(".git/hooks/pre-commit", 0o755);
    only("git", &machine(&hooks), &usual(), Severity::Note, &["pre-commit"]);
    let hooks = hooks
        .file(".git/hooks/post-index-change", "#!/bin/sh\n")
        .mode(".git/hooks/post-index-change", 0o755);
    only(
        "git",
        &machine(&hooks),
        &usual(),
        Severity::Problem,
        &["post-index-change", "nearly every command"],
    );
}

#[test]
fn a_monitor_that_is_a_program_is_timed_and_filters_without_a_process_are_noted() {
    let tree = repository()
        .file("monitor", "#!/bin/sh\n/bin/sleep 0.05\nexit 1\n")
        .mode("monitor", 0o755);
    configure(&tree, "core.fsmonitor", tree.root().join("monitor").to_str().unwrap());
    let finding = only(
        "git",
        &machine(&tree),
        &usual(),
        Severity::Problem,
        &["core.fsmonitor="],
    );
    assert!(finding.effect.unwrap().span.0 >= 40_000_000);
    configure(&tree, "core.fsmonitor", "true");
    configure(&tree, "filter.one.clean", "cat");
    configure(&tree, "filter.two.smudge", "cat");
    configure(&tree, "filter.two.process", "two");
    only("git", &machine(&tree), &usual(), Severity::Note, &["of the filter one"]);
}

#[test]
fn a_fresh_repository_and_no_repository_are_silent() {
    for tree in [repository(), Tree::new()] {
        let diagnosis = diagnose("git", &machine(&tree), &usual());
        assert!(
            diagnosis.findings.is_empty() && diagnosis.unseen.is_empty(),
            "{diagnosis:?}"
        );
    }
}

#[test]
fn what_is_measured_here_is_plausible() {
    let measured = Measured::take(&Machine::here(None).unwrap());
    let launch = measured.launch;
    let [fork, dynamic] =
        [launch.fork, launch.exec_dynamic].map(|time| time.expect("forks and /bin/true can be timed"));
    assert!(fork < dynamic, "{launch:?}");
    if cfg!(target_arch = "x86_64") {
        let exec = launch.exec_static.expect("the static program runs");
        assert!(fork < exec && exec < dynamic, "{launch:?}");
        let scan = measured.scan.as_ref().expect("copies can be made");
        assert_eq!([scan.first.len(), scan.later.len(), scan.at_once.len()], [7, 7, 8]);
    }
    assert!(
        !measured.lookups.is_empty() && measured.system_call.is_some(),
        "{measured:?}"
    );
    assert_eq!(
        measured.without_loader_variables.is_some(),
        std::env::var_os("LD_LIBRARY_PATH").is_some()
    );
}
