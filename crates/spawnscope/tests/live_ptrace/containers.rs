//! `record` without options in containers: under the rules of Docker's default seccomp profile, and
//! in the namespaces of rootless containers.

use std::process::Command;

use crate::support::launches::Launches;
use crate::support::run::{Finished, PublicDirectory, run};
use crate::support::texts::assert_contains;
use crate::support::workloads::word;
use crate::support::{apply, live_test};

/// Creates namespaces like those of a rootless container, in which the user is root and the command
/// is a child of process 1.
const ROOTLESS: [&str; 6] = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];

/// Runs the program through launchers, as the user of the test.
fn run_as_root(directory: &PublicDirectory, launchers: &[&str], words: &[&str]) -> Finished {
    let program = directory.path().join("spawnscope").display().to_string();
    let all = [launchers, &[&program], words].concat();
    run(Command::new(all[0]).args(&all[1..]).current_dir(directory.path()).env_remove("LD_LIBRARY_PATH"))
}

/// Returns the launches of the recording that was made in the directory.
fn launches(directory: &PublicDirectory) -> Launches {
    let export = ["export", "--format", "ndjson", "spawnscope.db"];
    Launches::parse(&run_as_root(directory, &[], &export).expect_code(0).stdout)
}

/// Records three launches, as an ordinary user or as the user of the test. Checks the line about
/// the collector and the recording.
#[track_caller]
fn assert_records_by_ptrace(is_ordinary: bool, launchers: &[&str]) {
    let directory = PublicDirectory::new();
    let words = ["record", "--", "sh", "-c", "ls / | wc -l; exit 4"];
    let finished =
        if is_ordinary { directory.run(launchers, &words) } else { run_as_root(&directory, launchers, &words) };
    let collector = "collecting with ptrace: savings are less certain";
    let line = finished.expect_code(4).message();
    assert_contains(&line, [collector, "eBPF needs ", "recorded 3 launches"]);
    assert!(!line.contains("replay error"), "{line}");
    let all = launches(&directory);
    for command in ["ls", "wc"] {
        let launch = all.only(|launch| launch.command() == command);
        assert_eq!(launch.exit_code(), Some(0), "{launch}");
        assert!(launch.phase_ns("load").is_some(), "{launch}");
    }
}

/// Returns the path of a program that runs a command under the rules of Docker's default seccomp
/// profile.
fn docker() -> String {
    word("like_docker")
}

live_test! {
    #[needs(Setpriv)]
    fn an_ordinary_user_records_by_ptrace = assert_records_by_ptrace(true, &[]);
    #[needs(Setpriv, Cc)]
    fn under_dockers_default_rules_an_ordinary_user_records_by_ptrace = assert_records_by_ptrace(true, &[&docker()]);
    #[needs(Cc)]
    // Root in such a container has neither CAP_BPF nor CAP_PERFMON. Here it has both, and the rules
    // refuse the calls.
    fn under_dockers_default_rules_root_records_by_ptrace = assert_records_by_ptrace(false, &[&docker()]);
    #[needs(Setpriv, PidNs)]
    fn in_a_rootless_container_record_uses_ptrace = assert_records_by_ptrace(true, &ROOTLESS);
    #[needs(Setpriv, PidNs, Cc)]
    fn in_a_rootless_container_with_dockers_rules_record_uses_ptrace =
        assert_records_by_ptrace(true, &[&ROOTLESS[..], &[&docker()]].concat());
}

#[apply(live_test)]
#[needs(Cc)]
fn ebpf_that_dockers_rules_refuse_fails_with_the_reason() {
    let (directory, docker) = (PublicDirectory::new(), docker());
    let words = ["record", "--collector", "ebpf", "--", "true"];
    let errors = run_as_root(&directory, &[&docker], &words).expect_code(125).errors();
    assert!(errors.contains("CAP_BPF"), "{errors}");
}

/// The C library falls back from clone3, which these rules hide, and its threads launch.
#[apply(live_test)]
#[needs(Cc, Python)]
fn launches_of_threads_without_clone3_are_recorded() {
    let (directory, docker) = (PublicDirectory::new(), docker());
    let script = "import subprocess, threading\n\
                  work = lambda: [subprocess.run(['/bin/true'], check=True) for _ in range(3)]\n\
                  threads = [threading.Thread(target=work) for _ in range(5)]\n\
                  [thread.start() for thread in threads]; [thread.join() for thread in threads]\n";
    let words = ["record", "-q", "--", "/usr/bin/python3", "-S", "-c", script];
    run_as_root(&directory, &[&docker], &words).expect_code(0);
    let all = launches(&directory);
    assert_eq!(all.all(|launch| launch.command() == "true").len(), 15);
}
