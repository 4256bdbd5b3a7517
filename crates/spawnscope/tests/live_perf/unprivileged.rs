//! As an ordinary user: perf events follow the user's own processes, and are chosen where ptrace is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::launches::Launches;
use crate::support::run::{Finished, SPAWNSCOPE, as_nobody, run};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

/// A directory and a copy of the program that user 65534 can reach.
struct Reachable {
    directory: tempfile::TempDir,
}

impl Reachable {
    fn new() -> Reachable {
        let directory = tempfile::Builder::new()
            .tempdir_in("/tmp")
            .expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("an open directory");
        fs::copy(SPAWNSCOPE, directory.path().join("spawnscope")).expect("a copy");
        Reachable { directory }
    }

    /// Runs the program in the directory, through launchers in the order of their start.
    fn run(&self, launchers: &[&str], words: &[&str]) -> Finished {
        let mut command: Command = as_nobody();
        command
            .args(launchers)
            .arg(self.directory.path().join("spawnscope"))
            .args(words);
        command.current_dir(self.directory.path()).env_remove("LD_LIBRARY_PATH");
        run(&mut command)
    }

    fn launches(&self) -> Launches {
        let lines = self
            .run(&[], &["export", "--format", "ndjson", "spawnscope.db"])
            .expect_code(0);
        Launches::parse(&lines.stdout)
    }
}

#[apply(live_test)]
#[needs(Setpriv, PerfEvents)]
fn perf_events_need_no_privilege_and_say_what_is_unknown() {
    let reachable = Reachable::new();
    let words = [
        "record",
        "--collector",
        "perf",
        "--",
        "sh",
        "-c",
        "ls / | wc -l; exit 4",
    ];
    let errors = reachable.run(&[], &words).expect_code(4).errors();
    assert!(
        errors.contains("collecting with perf; unknown: ") && errors.contains("sudo"),
        "{errors}"
    );
    assert!(errors.contains("recorded 3 launches"), "{errors}");
    let all = reachable.launches();
    for command in ["ls", "wc"] {
        let launch = all.only(|launch| launch.command() == command);
        assert!(
            launch.phase_ns("queue").is_some() && launch.phase_ns("load").is_some(),
            "{}",
            launch.json()
        );
    }
}

#[apply(live_test)]
#[needs(Setpriv, PerfEvents, Cc)]
fn where_ptrace_is_refused_perf_events_are_chosen() {
    let reachable = Reachable::new();
    let without = path("without_ptrace");
    let without = without.to_str().expect("a path in UTF-8");
    let errors = reachable
        .run(&[without], &["record", "--", "sh", "-c", "/bin/true; exit 4"])
        .expect_code(4)
        .errors();
    assert!(errors.contains("collecting with perf"), "{errors}");
    let unwrapped = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("ptrace would add some of them"), "{errors}");
    assert!(errors.contains("recorded 2 launches"), "{errors}");
}

#[apply(live_test)]
#[needs(Setpriv, Cc)]
fn where_nothing_works_all_reasons_are_printed() {
    let reachable = Reachable::new();
    let without = ["without_ptrace", "without_perf"].map(path);
    let without = without.each_ref().map(|path| path.to_str().expect("a path in UTF-8"));
    let errors = reachable
        .run(&without, &["record", "--", "true"])
        .expect_code(125)
        .errors();
    for reason in [
        "CAP_BPF",
        "failed to collect with ptrace",
        "failed to collect with perf",
    ] {
        assert!(errors.contains(reason), "{reason}: {errors}");
    }
}

/// The kernel removes the events of a process that gains privilege.
#[apply(live_test)]
#[needs(Setpriv, PerfEvents)]
fn a_set_user_id_program_keeps_its_privilege_and_its_end_is_recorded() {
    let reachable = Reachable::new();
    let program = reachable.directory.path().join("slow_id");
    // A copy of a program that lives long enough to be watched.
    fs::copy("/bin/sleep", &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a set-user-id program");
    let words = [
        "record",
        "--collector",
        "perf",
        "--",
        "sh",
        "-c",
        "./slow_id 0.4; exit 6",
    ];
    let errors = reachable.run(&[], &words).expect_code(6).errors();
    assert!(errors.contains("slow_id runs with privilege"), "{errors}");
    let all = reachable.launches();
    let launch = all.only(|launch| launch.command() == "slow_id");
    let span = launch.end_ns().zip(launch.start_ns()).map(|(end, start)| end - start);
    assert!(
        span.is_some_and(|span| (400_000_000..800_000_000).contains(&span)),
        "{}",
        launch.json()
    );
}
