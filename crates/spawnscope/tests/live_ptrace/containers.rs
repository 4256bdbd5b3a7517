//! `record` without options in containers: under the rules of Docker's default seccomp profile, and in the namespaces of rootless containers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::launches::Launches;
use crate::support::run::{Finished, SPAWNSCOPE, as_nobody, run};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

/// Creates namespaces like those of a rootless container, in which the user is root and the command is a child of process 1.
const ROOTLESS: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--pid",
    "--fork",
    "--mount-proc",
];

/// A directory with a copy of the program, to which every user has access.
struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Directory {
        let directory = tempfile::Builder::new()
            .tempdir_in("/tmp")
            .expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("an open directory");
        fs::copy(SPAWNSCOPE, directory.path().join("spawnscope")).expect("a copy");
        Directory(directory)
    }

    /// Runs the program through launchers, as an ordinary user or as the user of the test.
    fn run(&self, is_ordinary: bool, launchers: &[&str], words: &[&str]) -> Finished {
        let program = self.0.path().join("spawnscope");
        let program = program.to_str().expect("a path in UTF-8");
        let all: Vec<&str> = launchers.iter().copied().chain([program]).collect();
        let mut command = if is_ordinary {
            let mut command = as_nobody();
            command.arg(all[0]);
            command
        } else {
            Command::new(all[0])
        };
        command.args(&all[1..]).args(words).current_dir(self.0.path());
        run(command.env_remove("LD_LIBRARY_PATH"))
    }

    /// Records three launches, and checks the line about the collector and the recording.
    #[track_caller]
    fn assert_records_by_ptrace(&self, is_ordinary: bool, launchers: &[&str]) {
        let words = ["record", "--", "sh", "-c", "ls / | wc -l; exit 4"];
        let errors = self.run(is_ordinary, launchers, &words).expect_code(4).errors();
        let line = errors.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            line.contains("collecting with ptrace; unknown: create, most reaps"),
            "{errors}"
        );
        assert!(line.contains("to record these too: "), "{errors}");
        assert!(line.contains("recorded 3 launches"), "{errors}");
        let export = ["export", "--format", "ndjson", "spawnscope.db"];
        let all = Launches::parse(&self.run(false, &[], &export).expect_code(0).stdout);
        for command in ["ls", "wc"] {
            let launch = all.only(|launch| launch.command() == command);
            assert_eq!(launch.exit_code(), Some(0), "{}", launch.json());
            assert!(launch.phase_ns("load").is_some(), "{}", launch.json());
        }
    }
}

/// Returns the path of a program that runs a command under the rules of Docker's default seccomp profile.
fn docker() -> String {
    path("like_docker").to_str().expect("a path in UTF-8").to_owned()
}

#[apply(live_test)]
#[needs(Setpriv, Cc)]
fn under_dockers_default_rules_an_ordinary_user_records_by_ptrace() {
    Directory::new().assert_records_by_ptrace(true, &[&docker()]);
}

/// Root in such a container has neither CAP_BPF nor CAP_PERFMON. Here it has both, and the rules refuse the calls.
#[apply(live_test)]
#[needs(Cc)]
fn under_dockers_default_rules_root_records_by_ptrace() {
    Directory::new().assert_records_by_ptrace(false, &[&docker()]);
}

#[apply(live_test)]
#[needs(Setpriv, PidNs)]
fn in_a_rootless_container_record_uses_ptrace() {
    Directory::new().assert_records_by_ptrace(true, &ROOTLESS);
}

#[apply(live_test)]
#[needs(Setpriv, PidNs, Cc)]
fn in_a_rootless_container_with_dockers_rules_record_uses_ptrace() {
    let docker = docker();
    let launchers: Vec<&str> = ROOTLESS.iter().copied().chain([docker.as_str()]).collect();
    Directory::new().assert_records_by_ptrace(true, &launchers);
}

#[apply(live_test)]
#[needs(Cc)]
fn collectors_that_dockers_rules_refuse_fail_with_the_reason() {
    let (directory, docker) = (Directory::new(), docker());
    for (collector, reason) in [("ebpf", "CAP_BPF"), ("perf", "perf_event_open")] {
        let words = ["record", "--collector", collector, "--", "true"];
        let errors = directory.run(false, &[&docker], &words).expect_code(125).errors();
        assert!(errors.contains(reason), "{collector}: {errors}");
    }
}

/// The C library falls back from clone3, which these rules hide, and its threads launch.
#[apply(live_test)]
#[needs(Cc, Python)]
fn launches_of_threads_without_clone3_are_recorded() {
    let (directory, docker) = (Directory::new(), docker());
    let script = "import subprocess, threading\n\
                  work = lambda: [subprocess.run(['/bin/true'], check=True) for _ in range(3)]\n\
                  threads = [threading.Thread(target=work) for _ in range(5)]\n\
                  [thread.start() for thread in threads]; [thread.join() for thread in threads]\n";
    let words = ["record", "-q", "--", "/usr/bin/python3", "-S", "-c", script];
    directory.run(false, &[&docker], &words).expect_code(0);
    let export = ["export", "--format", "ndjson", "spawnscope.db"];
    let all = Launches::parse(&directory.run(false, &[], &export).expect_code(0).stdout);
    assert_eq!(all.all(|launch| launch.command() == "true").len(), 15);
}
