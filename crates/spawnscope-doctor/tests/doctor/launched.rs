//! Tests of the checks that start programs: git, Python and shims. The programs are
//! installed ones, or scripts that the test writes. The files that they read at start are written
//! by the test.

use std::time::Duration;

use spawnscope_doctor::{Finding, Machine, Measured, Severity};

use crate::attempts::best_of_three;
use crate::tree::{Tree, diagnose, expect, expect_nothing, find_one, usual_measurements};

/// Returns the real machine with its installed programs, in an environment with only PATH and HOME.
pub(crate) fn installed_machine(tree: &Tree) -> Machine {
    Machine::with_root("/")
        .with_variable("PATH", "/usr/bin:/bin")
        .with_variable("HOME", tree.root())
        .in_directory(tree.root())
}

/// Returns measurements that have used up most of the doctor's time: what remains is enough to
/// notice that a program hangs.
pub(crate) fn with_little_time() -> Measured {
    Measured { took: Duration::from_millis(2800), ..usual_measurements() }
}

/// Returns the only finding, a problem with a program that hangs. Makes several attempts, because a
/// busy machine leaves less time.
#[track_caller]
fn find_hanging(id: &str, machine: &Machine, words: &[&str]) -> Finding {
    best_of_three(|| {
        let finding = find_one(id, machine, &with_little_time(), Severity::Problem, words)?;
        let is_lower_bound = finding.effect.is_some_and(|effect| effect.is_lower_bound);
        expect(is_lower_bound && has_longer_effect(&finding, 250_000_000), &finding)?;
        Ok(finding)
    })
}

fn has_longer_effect(finding: &Finding, ns: u64) -> bool {
    finding.effect.is_some_and(|effect| effect.span.0 > ns)
}

/// Returns the only finding. Makes several attempts, because a busy machine slows down the
/// baseline.
#[track_caller]
fn find_in_attempts(id: &str, machine: &Machine, severity: Severity, words: &[&str]) -> Finding {
    best_of_three(|| find_one(id, machine, &usual_measurements(), severity, words))
}

/// Returns the only finding, a problem with an effect of more than `ns`. Makes several attempts.
#[track_caller]
pub(crate) fn find_problem_longer_than(id: &str, machine: &Machine, words: &[&str], ns: u64) -> Finding {
    best_of_three(|| {
        let finding = find_one(id, machine, &usual_measurements(), Severity::Problem, words)?;
        expect(has_longer_effect(&finding, ns), &finding)?;
        Ok(finding)
    })
}

/// Checks that nothing is found. Makes several attempts, because on a busy machine a delay may be
/// reported by chance.
#[track_caller]
fn find_nothing_in_attempts(id: &str, machine: &Machine) {
    best_of_three(|| {
        let found = diagnose(id, machine, &usual_measurements()).findings;
        expect(found.is_empty(), found)
    });
}

/// Returns a machine with scripts of the test first in PATH.
pub(crate) fn with_programs(programs: &[(&str, &str)]) -> (Tree, Machine) {
    let tree = programs.iter().fold(Tree::new(), |tree, (name, script)| {
        let file = format!("bin/{name}");
        tree.file(&file, format!("#!/bin/sh\n{script}\n")).mode(&file, 0o755)
    });
    let path = format!("{}:/usr/bin:/bin", tree.root().join("bin").display());
    let machine = installed_machine(&tree).with_variable("PATH", path);
    (tree, machine)
}

#[test]
fn a_program_that_does_not_end_is_a_separate_problem() {
    let hanging = "exec /bin/sleep 60";
    for (check, program) in [("interpreters", "python3"), ("git", "git")] {
        let (_tree, machine) = with_programs(&[(program, hanging)]);
        find_hanging(check, &machine, &[program, "does not finish within"]);
    }
}

#[test]
fn a_program_that_kills_its_supervisor_is_not_examined() {
    let (_tree, machine) = with_programs(&[("python3", "kill -9 $PPID")]);
    let diagnosis = diagnose("interpreters", &machine, &usual_measurements());
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    let not_examined = format!("{:?}", diagnosis.not_examined);
    assert!(not_examined.contains("its supervising process was killed"), "{not_examined}");
}

#[test]
fn slow_site_packages_of_python_are_reported() {
    let tree = Tree::new().file("slow/sitecustomize.py", "import time\ntime.sleep(0.1)\n");
    let slow = installed_machine(&tree).with_variable("PYTHONPATH", tree.root().join("slow"));
    let words = ["Python spends", "sitecustomize", "PYTHONPATH="];
    find_problem_longer_than("interpreters", &slow, &words, 90_000_000);
    find_nothing_in_attempts("interpreters", &installed_machine(&tree));
    // Output of a start-up module is not taken as Python's answer.
    let chatty = Tree::new().file("slow/sitecustomize.py", "import time\nprint('hello')\ntime.sleep(0.1)\n");
    let chatty = installed_machine(&chatty).with_variable("PYTHONPATH", chatty.root().join("slow"));
    find_in_attempts("interpreters", &chatty, Severity::Problem, &["sitecustomize"]);
}

#[test]
fn slow_or_failing_interpreter_options_are_problems() {
    let (tree, machine) = with_programs(&[
        ("node", "[ -z \"$NODE_OPTIONS\" ] || /bin/sleep 0.08"),
        ("perl", ""),
        ("java", "[ -z \"$JAVA_TOOL_OPTIONS\" ]"),
        ("python3", "exit 1"),
    ]);
    let node = machine.clone().with_variable("NODE_OPTIONS", "--require /opt/agent.js --title hunter2");
    let words = ["NODE_OPTIONS makes each start of node", "echo $NODE_OPTIONS"];
    let finding = find_problem_longer_than("interpreters", &node, &words, 60_000_000);
    assert!(!format!("{finding:?}").contains("hunter2"), "{finding:?}");
    find_nothing_in_attempts("interpreters", &machine.clone().with_variable("PERL5OPT", "-d:Trace"));
    let refused = machine.clone().with_variable("JAVA_TOOL_OPTIONS", "-javaagent:/gone.jar=hunter2");
    find_in_attempts("interpreters", &refused, Severity::Problem, &["java fails with JAVA_TOOL_OPTIONS"]);
    // The interpreter that reads the options is not installed.
    let absent = machine.with_variable("PATH", tree.root().join("nowhere"));
    let absent = absent.with_variable("NODE_OPTIONS", "-r /opt/agent.js");
    expect_nothing("interpreters", &absent, &usual_measurements());
}

#[test]
fn shims_are_timed_against_their_targets() {
    let tree = Tree::new()
        .file("real/python3", "#!/bin/sh\necho Python 3\n")
        .mode("real/python3", 0o755)
        .directory(".pyenv/bin");
    let real = tree.root().join("real/python3");
    let shim = format!("#!/bin/sh\n/bin/sleep 0.05\nexec {} \"$@\"\n", real.display());
    let manager = format!("#!/bin/sh\necho {}\n", real.display());
    let tree = tree
        .file(".pyenv/shims/python3", shim)
        .mode(".pyenv/shims/python3", 0o755)
        .file(".pyenv/bin/pyenv", manager)
        .mode(".pyenv/bin/pyenv", 0o755);
    let root = tree.root().display();
    let shimmed = installed_machine(&tree).with_variable("PATH", format!("{root}/.pyenv/shims:/usr/bin:/bin"));
    let words = ["python3 is a shim of pyenv", "real:$PATH"];
    find_problem_longer_than("shims", &shimmed, &words, 40_000_000);
    // The same shim in a directory that only PYENV_ROOT names.
    let elsewhere = tree.root().join("versions");
    std::fs::rename(tree.root().join(".pyenv"), &elsewhere).unwrap();
    let unknown = installed_machine(&tree).with_variable("PATH", format!("{root}/versions/shims:/usr/bin:/bin"));
    assert!(diagnose("shims", &unknown, &usual_measurements()).findings.is_empty());
    find_in_attempts("shims", &unknown.with_variable("PYENV_ROOT", &elsewhere), Severity::Problem, &words);
    std::fs::rename(&elsewhere, tree.root().join(".pyenv")).unwrap();
    let path = format!("{root}/real:/usr/bin:/bin:{root}/.pyenv/shims");
    let direct = installed_machine(&tree).with_variable("PATH", path);
    assert!(diagnose("shims", &direct, &usual_measurements()).findings.is_empty());
}

#[test]
fn version_managers_are_kept_from_downloading_or_not_started() {
    let script = "echo $RUSTUP_AUTO_INSTALL $MISE_NOT_FOUND_AUTO_INSTALL >asked; exit 1";
    let tree = Tree::new()
        .file(".cargo/bin/cargo", "#!/bin/sh\n")
        .mode(".cargo/bin/cargo", 0o755)
        .file(".cargo/bin/rustup", format!("#!/bin/sh\n{script}\n"))
        .mode(".cargo/bin/rustup", 0o755);
    let path = tree.root().join(".cargo/bin");
    let diagnosis = diagnose("shims", &installed_machine(&tree).with_variable("PATH", path), &usual_measurements());
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    assert_eq!(diagnosis.not_examined[0].what, "`rustup which cargo` failed");
    let asked = std::fs::read_to_string(tree.root().join("asked")).unwrap();
    assert_eq!(asked, "0 0\n");
    let started = "touch started";
    let tree = Tree::new()
        .file(".volta/bin/node", format!("#!/bin/sh\n{started}\n"))
        .mode(".volta/bin/node", 0o755)
        .file(".volta/bin/volta", format!("#!/bin/sh\n{started}\n"))
        .mode(".volta/bin/volta", 0o755);
    let path = format!("{}:/usr/bin", tree.root().join(".volta/bin").display());
    let diagnosis = diagnose("shims", &installed_machine(&tree).with_variable("PATH", path), &usual_measurements());
    assert!(diagnosis.not_examined[0].what.contains("none was started"), "{diagnosis:?}");
    assert!(!tree.root().join("started").exists());
}

/// Makes several attempts, because on a busy machine any kind of launch may be the slowest by
/// chance.
#[test]
fn a_fork_is_faster_than_a_static_exec_and_that_is_faster_than_a_dynamic_one() {
    best_of_three(|| {
        let launch = Measured::measure(&Machine::real(None).unwrap()).launch;
        expect(launch.exec_static.is_some(), launch)?;
        let times = [launch.fork, launch.exec_static, launch.exec_dynamic];
        let timed: Vec<_> = times.into_iter().flatten().collect();
        let are_all_timed = launch.fork.is_some() && launch.exec_dynamic.is_some();
        expect(are_all_timed && timed.is_sorted(), launch)
    });
}

#[test]
fn all_measurements_are_taken_on_a_real_machine() {
    best_of_three(|| {
        let measured = Measured::measure(&Machine::real(None).unwrap());
        let are_copies_launched = match &measured.scan {
            Some(scan) => {
                let kinds = [
                    &scan.creation_times, &scan.first_launches, &scan.later_launches, &scan.memory_launches,
                    &scan.concurrent_launches,
                ];
                let counts = kinds.map(Vec::len);
                // Launches that waited for a CPU are left out; then `is_disturbed` is set.
                counts == [7, 7, 14, 14, 8] || scan.is_disturbed && !counts.contains(&0)
            }
            None => false,
        };
        let is_loader_timed =
            measured.without_loader_variables.is_some() == std::env::var_os("LD_LIBRARY_PATH").is_some();
        let is_timed = !measured.lookups.is_empty() && measured.system_call.is_some();
        expect(are_copies_launched && is_loader_timed && is_timed, measured)
    });
}
