//! Advice about how parents and the system slow launches down, on real recordings: each cause gets advice, clean work does not.

use serde_json::Value;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::recording::{self, advice_of_rule};
use crate::support::run::Record;
use crate::support::workloads::{directory, path, word};
use crate::support::{apply, live_test};

/// The rules that this file is about.
const RULES: &str = "large-parent large-parent-pages growing-parent close-loop loader-search loader scanner late-reaping \
                     teardown run-queue slow-machine";

/// Records a command, and returns the advice for it.
fn advice(command: &[&str]) -> Vec<Value> {
    let record = Record::new();
    record.run(command).expect_code(0);
    recording::advice(&record.file())
}

#[track_caller]
fn expect<'a>(findings: &'a [Value], rule: &str, count: u64, in_fix: &str) -> &'a Value {
    let advice = advice_of_rule(findings, rule).unwrap_or_else(|| panic!("no {rule}: {findings:#?}"));
    assert_eq!(advice["count"].as_u64(), Some(count), "{advice:#}");
    assert!(advice["fix"].to_string().contains(in_fix), "{in_fix}: {advice:#}");
    let [low, saving, high] =
        ["saving_low_ns", "saving_ns", "saving_high_ns"].map(|key| advice[key].as_u64().expect("nanoseconds"));
    assert!(0 < low && low <= saving && saving <= high, "{advice:#}");
    advice
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_large_parent_that_forks_gets_advice() {
    let launch = "for (1..12) { system '/bin/true' }";
    let large = format!("my $x = 'a' x 300e6; {launch}");
    expect(&advice(&["perl", "-e", &large]), "large-parent", 12, "Proc::FastSpawn");
    let small = advice(&["perl", "-e", launch]);
    assert!(advice_of_rule(&small, "large-parent").is_none(), "{small:#?}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_large_parent_whose_forks_execute_nothing_gets_advice_on_huge_pages() {
    let script = "my $x = 'a' x 300e6; for (1..12) { my $pid = fork; exit 0 unless $pid; waitpid $pid, 0 }";
    let findings = advice(&["perl", "-e", script]);
    expect(&findings, "large-parent-pages", 12, "glibc.malloc.hugetlb=1");
    assert!(advice_of_rule(&findings, "large-parent").is_none(), "{findings:#?}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_growing_parent_is_reported() {
    let script = "my @x; for (1..80) { push @x, 'a' x 4e6; system '/bin/true' }";
    let findings = advice(&["perl", "-e", script]);
    expect(&findings, "growing-parent", 80, "find what grows");
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn loops_of_closes_are_reported_and_single_calls_are_not() {
    let command = [path("closing").into_os_string(), "100000".into(), path("tiny").into()];
    let record = Record::new();
    record.run(command).expect_code(0);
    // Of the five ways in which `closing` closes descriptors, two are loops of closes: with and without a break.
    expect(&recording::advice(&record.file()), "close-loop", 2, "close_range(3, ~0U");
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_library_path_of_empty_directories_is_reported() {
    expect(&advice_with_search_path(150), "loader-search", 60, "LD_LIBRARY_PATH");
    let none = advice_with_search_path(0);
    assert!(advice_of_rule(&none, "loader-search").is_none(), "{none:#?}");
}

fn advice_with_search_path(directories: usize) -> Vec<Value> {
    let empty = tempfile::tempdir().expect("a temporary directory");
    let mut search = String::new();
    for number in 0..directories {
        let directory = empty.path().join(number.to_string());
        std::fs::create_dir_all(&directory).expect("a directory");
        search += &format!("{}:", directory.display());
    }
    let script = format!(
        "export LD_LIBRARY_PATH={search}{}; for i in {{1..60}}; do {}; done",
        directory().display(),
        word("needs_libraries"),
    );
    advice(&["bash", "-c", &script])
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_polling_parent_gets_advice_to_wait() {
    // The parent must not poll by `select` with a time limit: on kernels that hide the preempt count, the timeout may look like a wake-up
    // by another process.
    let launch = "use Time::HiRes 'usleep'; my $pid = fork; exec 'sleep', '0.03' unless $pid;";
    let poll = format!("for (1..8) {{ {launch} usleep 50000 until waitpid($pid, 1) > 0 }}");
    best_of_three(|| {
        let findings = advice(&["perl", "-e", &poll]);
        // A child that a stall delays until the parent polls again does not wait to be reaped.
        let count = advice_of_rule(&findings, "late-reaping").and_then(|advice| advice["count"].as_u64());
        ok_if(count == Some(8), || format!("findings of {count:?} of 8"))?;
        expect(&findings, "late-reaping", 8, "waitpid($pid, 0)");
        let wait = format!("for (1..8) {{ {launch} waitpid $pid, 0 }}");
        let waiting = advice(&["perl", "-e", &wait]);
        ok_if(advice_of_rule(&waiting, "late-reaping").is_none(), || format!("{waiting:#?}"))
    });
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn programs_that_free_much_memory_are_reported() {
    let program = &word("many_mappings");
    let script = "for i in 1 2 3 4 5 6; do \"$0\" \"$1\"; done";
    let large = advice(&["bash", "-c", script, program, "2000"]);
    expect(&large, "teardown", 6, "GLIBC_TUNABLES");
    let small = advice(&["bash", "-c", script, program, "1"]);
    assert!(advice_of_rule(&small, "teardown").is_none(), "{small:#?}");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn oversubscribed_cpus_are_reported() {
    let busy = "bash -c 'for ((n = 0; n < 50000; n++)); do :; done'";
    let script = format!("n=$(nproc); seq $((6 * n)) | xargs -P$((3 * n)) -I{{}} {busy}");
    let findings = advice(&["bash", "-c", &script]);
    let advice = advice_of_rule(&findings, "run-queue").unwrap_or_else(|| panic!("no run-queue: {findings:#?}"));
    assert!(advice["saving_low_ns"].as_u64() > Some(0), "{advice:#}");
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify)]
fn a_scanner_is_named_without_advice_to_disable_it() {
    let scanned = tempfile::tempdir().expect("a temporary directory");
    let directory = scanned.path().to_str().expect("a path of characters");
    let record = Record::new().through(&[&word("scanned"), &word("tiny"), directory]);
    let script = "for i in 1 2 3 4 5 6; do \"$1/tiny\"; done";
    record.run(["bash", "-c", script, "bash", directory]).expect_code(0);
    let findings = recording::advice(&record.file());
    let advice = expect(&findings, "scanner", 6, "responsible for the security");
    assert!(advice["title"].to_string().contains("test-scanner"), "{advice:#}");
    assert!(advice["fix"].to_string().contains("leave protection on"), "{advice:#}");
}

/// The load of other processes may look like a problem of the system, so there are three attempts.
#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn clean_work_gets_no_advice_about_the_system() {
    let scripts = [
        "head -c 200000000 /dev/zero | wc -c",
        "sleep 0.5",
        "cd $(mktemp -d) && for i in {1..400}; do echo \"int f$i(int x) { return x * $i; }\"; done >a.c && cc -O1 -c a.c && rm -r $PWD",
        "for i in {1..200}; do /bin/true; done",
        "perl -e 'my $x = 0; $x += $_ for 1..3000000'",
        "for i in 1 2 3; do x=$(ls /usr/bin | sort | tail -n1); done",
    ];
    for script in scripts {
        best_of_three(|| {
            let findings = advice(&["bash", "-c", script]);
            let found = RULES.split(' ').filter_map(|rule| advice_of_rule(&findings, rule));
            let found: Vec<&Value> = found.collect();
            ok_if(found.is_empty(), || format!("{script}: {found:#?}"))
        });
    }
}
