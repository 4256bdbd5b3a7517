//! Spawns as pid 1 of a pid namespace, with a parent outside of the child's pid namespace, and
//! under strace.

use vspawn::{Command, Stage};

use crate::support::needs::Need;
use crate::support::{Test, expect_error, kernel, run_alone, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("every_kind_of_spawn_works_as_pid_1_of_a_namespace", || {
            run_alone(&["unshare", "--pid", "--fork", "--mount-proc"], "as_pid_1").unwrap();
        })
        .needs(&[Need::PidNs]),
        test("every_kind_of_spawn_works_under_strace", || {
            run_alone(&["strace", "-f", "-o", "/dev/null"], "every_kind_of_spawn").unwrap();
        })
        .needs(&[Need::Strace]),
        test("every_kind_of_spawn_works_under_strace_with_a_filter", || {
            let strace = ["strace", "-f", "--seccomp-bpf", "-e", "trace=execve", "-o", "/dev/null"];
            run_alone(&strace, "every_kind_of_spawn").unwrap();
        })
        .needs(&[Need::Strace]),
        test("a_living_parent_in_another_pid_namespace_does_not_cause_the_death_signal", parent_outside)
            .needs(&[Need::PidNs])
            .changes_its_process(),
        test("as_pid_1", as_pid_1).inner(),
        test("every_kind_of_spawn", every_kind_of_spawn).inner(),
    ]
}

fn as_pid_1() {
    assert_eq!(std::process::id(), 1);
    every_kind_of_spawn();
    assert!(Command::new("/bin/true").parent_death_signal(libc::SIGKILL).status().unwrap().success());
}

fn every_kind_of_spawn() {
    for _ in 0..5 {
        assert!(Command::new("/bin/true").status().unwrap().success());
        assert!(Command::new("/bin/true").spawn_nowait().unwrap().wait().unwrap().success());
        assert!(Command::new("/bin/true").close_others(true).status().unwrap().success());
        let forked = Command::new("/bin/true").mechanism(vspawn::Mechanism::Fork).status();
        assert!(forked.unwrap().success());
        expect_error(Command::new("/nowhere").spawn(), Stage::Exec, libc::ENOENT);
        expect_error(Command::new("/nowhere").spawn_nowait().unwrap().wait(), Stage::Exec, libc::ENOENT);
    }
    let output = Command::new("/bin/cat").capture().input(b"through").run().unwrap();
    assert_eq!(output.stdout, b"through");
    let mut child = Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap();
    child.signal_group(libc::SIGKILL).unwrap();
    assert!(!child.wait().unwrap().success());
}

/// In the child's pid namespace, the parent's pid is 0, which must not be mistaken for the parent's
/// end. `first` becomes pid 1 of the namespace, which could not be killed from within.
fn parent_outside() {
    kernel::put_children_into_new_pid_namespace();
    let mut first = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    let mut second = Command::new("/bin/sh");
    let status = second.args(["-c", "exit 9"]).parent_death_signal(libc::SIGKILL).status().unwrap();
    assert_eq!(status.code(), Some(9));
    first.kill().unwrap();
    first.wait().unwrap();
}
