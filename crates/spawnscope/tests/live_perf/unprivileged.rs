//! `record` as an ordinary user: perf events follow the user's own processes, and are used if ptrace is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::launches::Launches;
use crate::support::run::{Finished, SPAWNSCOPE, as_nobody, run};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

/// A directory with a copy of the program, to which user 65534 has access.
struct PublicDirectory {
    directory: tempfile::TempDir,
}

impl PublicDirectory {
    fn new() -> PublicDirectory {
        let directory = tempfile::Builder::new()
            .tempdir_in("/tmp")
            .expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("an open directory");
        fs::copy(SPAWNSCOPE, directory.path().join("spawnscope")).expect("a copy");
        PublicDirectory { directory }
    }

    /// Runs the program in the directory. The launchers execute each other in this order, and the last one executes the program.
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
    let public = PublicDirectory::new();
    let words = [
        "record",
        "--collector",
        "perf",
        "--",
        "sh",
        "-c",
        "ls / | wc -l; exit 4",
    ];
    let errors = public.run(&[], &words).expect_code(4).errors();
    assert!(
        errors.contains("collecting with perf; unknown: ") && errors.contains("sudo"),
        "{errors}"
    );
    assert!(errors.contains("recorded 3 launches"), "{errors}");
    let all = public.launches();
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
fn perf_events_are_used_if_ptrace_is_refused() {
    let public = PublicDirectory::new();
    let refusing = path("without_ptrace");
    let refusing = refusing.to_str().expect("a path in UTF-8");
    let errors = public
        .run(&[refusing], &["record", "--", "sh", "-c", "/bin/true; exit 4"])
        .expect_code(4)
        .errors();
    assert!(errors.contains("collecting with perf"), "{errors}");
    let unwrapped = errors.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("ptrace would record some of them"), "{errors}");
    assert!(errors.contains("recorded 2 launches"), "{errors}");
}

#[apply(live_test)]
#[needs(Setpriv, Cc)]
fn if_no_collector_works_all_reasons_are_printed() {
    let public = PublicDirectory::new();
    let refusing = ["without_ptrace", "without_perf"].map(path);
    let refusing = refusing.each_ref().map(|path| path.to_str().expect("a path in UTF-8"));
    let errors = public
        .run(&refusing, &["record", "--", "true"])
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
    let public = PublicDirectory::new();
    let program = public.directory.path().join("slow_id");
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
    let errors = public.run(&[], &words).expect_code(6).errors();
    assert!(errors.contains("slow_id runs with privilege"), "{errors}");
    let all = public.launches();
    let launch = all.only(|launch| launch.command() == "slow_id");
    let span = launch.end_ns().zip(launch.start_ns()).map(|(end, start)| end - start);
    assert!(
        span.is_some_and(|span| (400_000_000..800_000_000).contains(&span)),
        "{}",
        launch.json()
    );
}
