//! As pid 1 of a pid namespace, with a parent outside of the child's pid namespace, and under strace.

use vspawn::{Command, Stage};

use crate::support::needs::Need;
use crate::support::{Test, kernel, run_alone, test};

pub fn tests() -> Vec<Test> {
    let through = |wrapper: &'static [&str], inner: &'static str| move || run_alone(wrapper, inner).unwrap();
    vec![
        test(
            "as_pid_1_of_a_namespace_all_ways_work",
            through(&["unshare", "--pid", "--fork", "--mount-proc"], "as_pid_1"),
        )
        .needs(&[Need::PidNs]),
        test(
            "under_strace_all_ways_work",
            through(&["strace", "-f", "-o", "/dev/null"], "all_ways"),
        )
        .needs(&[Need::Strace]),
        test(
            "under_strace_with_a_filter_all_ways_work",
            through(
                &["strace", "-f", "--seccomp-bpf", "-e", "trace=execve", "-o", "/dev/null"],
                "all_ways",
            ),
        )
        .needs(&[Need::Strace]),
        test(
            "a_childs_signal_at_its_parents_death_spares_it_while_the_parent_lives_outside",
            parent_outside,
        )
        .needs(&[Need::PidNs])
        .changes_its_process(),
        test("as_pid_1", as_pid_1).inner(),
        test("all_ways", all_ways).inner(),
    ]
}

fn as_pid_1() {
    assert_eq!(std::process::id(), 1);
    all_ways();
    assert!(
        Command::new("/bin/true")
            .parent_death_signal(libc::SIGKILL)
            .status()
            .unwrap()
            .success()
    );
}

fn all_ways() {
    for _ in 0..20 {
        assert!(Command::new("/bin/true").status().unwrap().success());
        assert!(
            Command::new("/bin/true")
                .spawn_nowait()
                .unwrap()
                .wait()
                .unwrap()
                .success()
        );
        assert!(Command::new("/bin/true").close_others(true).status().unwrap().success());
        let forked = Command::new("/bin/true").mechanism(vspawn::Mechanism::Fork).status();
        assert!(forked.unwrap().success());
        let error = Command::new("/nowhere").spawn().unwrap_err();
        assert_eq!((error.stage(), error.raw_os_error()), (Stage::Exec, libc::ENOENT));
        let error = Command::new("/nowhere").spawn_nowait().unwrap().wait().unwrap_err();
        assert_eq!((error.stage(), error.raw_os_error()), (Stage::Exec, libc::ENOENT));
    }
    let output = Command::new("/bin/cat").capture().input(b"through").run().unwrap();
    assert_eq!(output.stdout, b"through");
    let mut child = Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap();
    child.signal_group(libc::SIGKILL).unwrap();
    assert!(!child.wait().unwrap().success());
}

/// From there, the parent's pid is 0, as if it had ended. The namespace's first process cannot be killed from within.
fn parent_outside() {
    kernel::children_in_a_new_pid_namespace();
    let mut first = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    let mut second = Command::new("/bin/sh");
    let status = second
        .args(["-c", "exit 9"])
        .parent_death_signal(libc::SIGKILL)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(9));
    first.kill().unwrap();
    first.wait().unwrap();
}
