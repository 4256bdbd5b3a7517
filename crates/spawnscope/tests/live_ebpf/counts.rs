//! Exact counts, compared with what the workload did: many launches, forks without exec, 32-bit
//! system calls.

use std::time::Duration;

use serde_json::Value;

use crate::support::prelude::*;

const ENOENT: i64 = 2;

#[apply(live_test)]
fn a_prime_number_of_launches_is_counted_exactly() {
    let record = Record::new();
    let command = [path("storm").into_os_string(), "1009".into(), path("tiny").into()];
    let truth = Truth::new(&record.run(command).expect_code(0).stdout);
    assert_eq!(truth.one("children"), 1009);

    let report = report(&record.file());
    assert_eq!(report["launches"], 1 + 1009, "the command's own process counts too");
    assert_eq!(report["lost_events"], 0);
    assert_eq!(report["unfinished"], 0);
    assert_eq!(row_of(&report, "tiny")["count"], 1009);

    let launches = launches(&record.file());
    let children = launches.children_of(launches.root());
    assert_eq!(children.len(), 1009);
    assert!(children.iter().all(|child| child.programs() == ["tiny"] && child.exit_code() == Some(0)));
    let incomplete = children.iter().find(|child| PHASES.iter().any(|phase| child.phase_ns(phase).is_none()));
    assert_eq!(incomplete.map(|child| child.json()), None, "a phase is unknown");
}

/// 32-bit system calls have other numbers and registers. Each child has a failed exec, and the
/// parent's waits are recorded with their arguments.
#[apply(live_test)]
#[needs(Bits32, Quiet)]
fn launches_by_32_bit_calls_are_complete() {
    best_of_three(try_calls_32_bit);
}

fn try_calls_32_bit() -> Result<(), String> {
    let record = Record::new();
    record.run([&word("calls_32_bit"), "/bin/true"]).expect_code(7);
    let launches = launches(&record.file());
    let children = launches.children_of(launches.root());
    let mechanisms: Vec<&str> = children.iter().map(|child| child.mechanism()).collect();
    // clone with the flags of fork counts as fork.
    assert_eq!(mechanisms, ["fork"; 3]);
    for child in children {
        assert_eq!(child.programs(), ["true"]);
        assert_eq!(child.failed_execs(), [("/nowhere/32".to_owned(), ENOENT)]);
        for phase in PHASES {
            assert!(child.phase_ns(phase).is_some(), "{phase} of {child}");
        }
        assert_eq!(child.json()["setup_closes"], Value::Null, "not counted");
    }
    // waitpid, wait4 and waitid are recorded with the numbers of 64-bit programs. The wait4 waits
    // for any child.
    let waits = launches.root().json()["waits"].as_array().expect("waits");
    let any = waits.iter().filter(|wait| wait["syscall"] == 61 && wait["argument"] == -1).count();
    let reaping = waits.iter().filter(|wait| wait["syscall"] == 61 || wait["syscall"] == 247).count();
    // On a busy machine, a child may have ended before its parent waits.
    ok_if(any == 1 && reaping >= 3, || format!("{waits:#?}"))
}

#[apply(live_test)]
fn forks_without_exec_are_counted() {
    let record = Record::new();
    let command = [script("forks_without_exec.sh"), "211".into()];
    let truth = Truth::new(&record.run(command).expect_code(0).stdout);
    let report = report(&record.file());
    assert_eq!(report["forks_without_exec"], truth.one("forks"));
    // The forks are named after the script, not after its interpreter.
    let forks = row_of(&report, "(forks_without_exec.sh)");
    assert_eq!(forks["count"], 211);
    let launches = launches(&record.file());
    let interpreter = &launches.root().json()["execs"][0]["interpreter"];
    assert!(interpreter.as_str().is_some_and(|path| path.ends_with("/env")), "{interpreter}");
}

/// Takes about 20 s. The buffer is large, because a debug build decodes several times slower than
/// the release build, whose losses `benchmarks/` measures.
#[apply(live_test)]
#[needs(Storms)]
fn a_hundred_thousand_launches_are_all_recorded() {
    const LAUNCHES: u64 = 100_000;
    const DEADLINE: Duration = Duration::from_secs(600);
    let record = Record::new().flags(&["--buffer", "262144"]);
    let command = [word("storm"), LAUNCHES.to_string(), word("tiny")];
    let running = Running::start(&mut record.command(command));
    running.finish_within(DEADLINE).expect_code(0);
    let report = report(&record.file());
    assert_eq!(report["lost_events"], 0);
    assert_eq!(report["launches"], LAUNCHES + 1);
    let tree = read(&["tree", "--unfold"], &record.file()).output();
    assert!(tree.lines().count() as u64 > LAUNCHES, "every launch has its line");
}
