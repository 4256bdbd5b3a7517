//! `record` as an ordinary user: perf events follow the user's own processes, and are used if ptrace is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::launches::Launches;
use crate::support::run::PublicDirectory;
use crate::support::texts::assert_contains;
use crate::support::workloads::word;
use crate::support::{apply, live_test};

/// Returns the launches of the recording that was made in the directory.
fn launches(public: &PublicDirectory) -> Launches {
    let export = ["export", "--format", "ndjson", "spawnscope.db"];
    Launches::parse(&public.run(&[], &export).expect_code(0).stdout)
}

/// Returns the words that record a shell script by perf events.
fn record_words(script: &str) -> [&str; 7] {
    ["record", "--collector", "perf", "--", "sh", "-c", script]
}

#[apply(live_test)]
#[needs(Setpriv, PerfEvents)]
fn perf_events_need_no_privilege_and_say_what_is_unknown() {
    let public = PublicDirectory::new();
    let errors = public.run(&[], &record_words("ls / | wc -l; exit 4")).expect_code(4).errors();
    assert_contains(&errors, ["collecting with perf; unknown: ", "sudo"]);
    assert!(errors.contains("recorded 3 launches"), "{errors}");
    let all = launches(&public);
    for command in ["ls", "wc"] {
        let launch = all.only(|launch| launch.command() == command);
        assert!(launch.phase_ns("queue").is_some() && launch.phase_ns("load").is_some(), "{launch}");
    }
}

#[apply(live_test)]
#[needs(Setpriv, PerfEvents, Cc)]
fn perf_events_are_used_if_ptrace_is_refused() {
    let public = PublicDirectory::new();
    let errors = public
        .run(&[&word("without_ptrace")], &["record", "--", "sh", "-c", "/bin/true; exit 4"])
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
    let refusing = ["without_ptrace", "without_perf"].map(word);
    let finished = public.run(&refusing.each_ref().map(String::as_str), &["record", "--", "true"]);
    let reasons = ["CAP_BPF", "failed to collect with ptrace", "failed to collect with perf"];
    finished.expect_code(125).expect_errors(reasons);
}

/// The kernel removes the events of a process that gains privilege.
#[apply(live_test)]
#[needs(Setpriv, PerfEvents)]
fn a_set_user_id_program_keeps_its_privilege_and_its_end_is_recorded() {
    let public = PublicDirectory::new();
    let program = public.path().join("slow_id");
    // A copy of a program that lives long enough to be watched.
    fs::copy("/bin/sleep", &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a set-user-id program");
    let errors = public.run(&[], &record_words("./slow_id 0.4; exit 6")).expect_code(6).errors();
    assert!(errors.contains("slow_id runs with privilege"), "{errors}");
    let all = launches(&public);
    let launch = all.only(|launch| launch.command() == "slow_id");
    let span = launch.end_ns().zip(launch.start_ns()).map(|(end, start)| end - start);
    assert!(span.is_some_and(|span| (400_000_000..800_000_000).contains(&span)), "{launch}");
}
