//! Machines that have or allow less: no compiler, folders without execution, a scanner of executables, Ctrl-C.

use std::os::unix::fs::symlink;
use std::process::Command;

use nix::sys::signal::{Signal, kill};

use crate::bench::{BRIEF, command, notes, only_experiment, report, rows};
use crate::support::LiveTest;
use crate::support::needs::Need;
use crate::support::pty::Session;
use crate::support::run::{Running, SPAWNSCOPE, await_some, run};
use crate::support::workloads;

pub fn tests() -> Vec<LiveTest> {
    let test = |name, needs, run| LiveTest { name, needs, run };
    vec![
        test("without_a_compiler_the_rest_is_measured", &[], no_compiler),
        test("without_any_program_the_tiny_one_is_left", &[], no_programs),
        test(
            "a_folder_that_executes_nothing_is_passed_over",
            &[Need::MountNs],
            no_execution,
        ),
        test(
            "a_scanner_of_new_executables_is_seen_and_its_queue",
            &[Need::Fanotify],
            scanner,
        ),
        test("ctrl_c_ends_with_what_there_is", &[], interrupted),
        test(
            "on_a_terminal_progress_is_shown_and_ctrl_c_ends_it",
            &[Need::Pty],
            on_a_terminal,
        ),
        test(
            "without_privilege_phases_are_unknown_and_root_is_named",
            &[Need::Setpriv],
            unprivileged,
        ),
    ]
}

fn with_path(experiments: &[&str], programs: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir().expect("a folder");
    for program in programs {
        symlink(format!("/usr/bin/{program}"), folder.path().join(program)).expect("a link");
    }
    let finished = run(command(&["--json"]).args(experiments).env("PATH", folder.path()));
    report(&finished.expect_code(0))
}

fn no_compiler() {
    let report = with_path(
        &["child-kind", "loader", "shims"],
        &["true", "bash", "cat", "env", "basename"],
    );
    for experiment in report["experiments"].as_array().expect("experiments") {
        let said = notes(experiment);
        assert!(
            said.contains("there is no cc") || said.contains("without a C compiler"),
            "{said}"
        );
        assert!(rows(experiment).len() >= 2, "{experiment}");
    }
}

fn no_programs() {
    let report = with_path(&["parent-size", "copy-on-write", "first-launch"], &[]);
    let experiments = report["experiments"].as_array().expect("experiments");
    assert!(experiments.iter().all(|experiment| !rows(experiment).is_empty()));
    assert!(notes(&experiments[0]).contains("without bash"));
    assert!(notes(&experiments[1]).contains("without cat"));
}

fn no_execution() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "mount -t tmpfs -o noexec none \"$0\" && export TMPDIR=\"$0\" && exec \"$@\"";
    let finished = run(Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .arg(folder.path())
        .arg(SPAWNSCOPE)
        .args(BRIEF)
        .args(["--json", "shell"]))
    .expect_code(0);
    let experiment = only_experiment(&report(&finished));
    let said = notes(&experiment);
    assert!(
        said.contains(&format!("could not be executed in {}", folder.path().display())),
        "{said}"
    );
    assert!(!rows(&experiment).is_empty());
}

/// Fresh files wait 20 ms each for the scanner's only thread; known ones do not.
fn scanner() {
    const SCAN_NS: f64 = 20e6;
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(workloads::path("scans_new_files"));
    command
        .arg(folder.path())
        .arg(SPAWNSCOPE)
        .args(BRIEF)
        .args(["--json", "first-launch"]);
    let experiment = only_experiment(&report(&run(&mut command).expect_code(0)));
    for row in rows(&experiment).iter().filter(|row| row["program"] == "tiny") {
        let at_once = row["at_once"].as_f64().expect("a number");
        let last = row["first_last_ns"]["low"].as_f64().expect("an interval");
        // The last of them is started a little after the first.
        assert!(last >= SCAN_NS * (at_once / 2.0).max(1.0), "one after the other: {row}");
    }
    let said = notes(&experiment);
    assert!(
        said.contains("tiny: a first launch takes") && said.contains("one after the other"),
        "{said}"
    );
}

fn interrupted() {
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["bench", "--seconds", "100", "--json", "shell", "mechanisms"]);
    let running = Running::start(&mut command);
    let pid = running.pid();
    await_some("a process that launches", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let is_worker = |child: &str| {
            std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| line.contains("lab-worker"))
        };
        children.split_whitespace().any(is_worker).then_some(())
    });
    kill(pid, Signal::SIGINT).expect("it runs");
    let finished = running.finish().expect_code(130);
    let report = report(&finished);
    assert_eq!(report["interrupted"], true);
    assert_eq!(
        report["experiments"].as_array().map(Vec::len),
        Some(1),
        "the second was not begun"
    );
}

fn on_a_terminal() {
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["bench", "--seconds", "100", "shell"]);
    let mut session = Session::start(&command);
    session.await_output(b"1/1 shell");
    session.await_output(b"Ctrl-C ends with what there is");
    session.type_keys(b"\x03");
    let (status, screen) = session.finish();
    assert_eq!(status.code(), Some(130));
    let screen = String::from_utf8_lossy(&screen).into_owned();
    assert!(screen.contains("A tiny command through a shell"), "{screen}");
}

fn unprivileged() {
    let mut command = Command::new("setpriv");
    let nobody = [
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--bounding-set",
        "-all",
        "--inh-caps",
        "-all",
    ];
    command
        .args(nobody)
        .arg(SPAWNSCOPE)
        .args(BRIEF)
        .args(["--json", "runtimes", "open-fds"]);
    let report = report(&run(command.env("HOME", "/nonexistent")).expect_code(0));
    let experiments = report["experiments"].as_array().expect("experiments");
    assert!(rows(&experiments[0]).iter().all(|row| row["exec_ns"].is_null()));
    assert!(
        notes(&experiments[0]).contains("root would add"),
        "{}",
        notes(&experiments[0])
    );
    assert!(rows(&experiments[1]).len() > 10);
}
