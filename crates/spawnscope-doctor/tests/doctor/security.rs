//! Tests of the check `scanners`.

use spawnscope_data::event::Nanos;
use spawnscope_doctor::Measured;
use spawnscope_doctor::measure::{Scan, StuckOperation};

use crate::tree::{Tree, diagnose, expect_note, expect_nothing, expect_problem_with, scan, usual_measurements};

fn tree_with_marks(name: &str, mask: &str) -> Tree {
    Tree::new().process(7, 1, name, 1).link("proc/7/fd/3", "anon_inode:[fanotify]").file(
        "proc/7/fdinfo/3",
        format!("pos:\t0\nfanotify flags:5 event-flags:0\nfanotify mnt_id:12 mflags:0 mask:{mask} ignored_mask:0\n"),
    )
}

fn with_slow_first_launches() -> Measured {
    Measured { scan: Some(scan(21, 1, &[20, 40, 60, 80, 100, 120])), ..usual_measurements() }
}

#[test]
fn holders_of_permission_marks_are_named_with_cost_and_queue() {
    let tree = tree_with_marks("guard", "10000");
    let words = ["guard (process 7)", "they queue", "leave protection on", "responsible"];
    let finding = expect_problem_with("scanners", &tree.machine(), &with_slow_first_launches(), &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(20_000_000));
    assert!(finding.title.contains("guard delays the first launch"), "{}", finding.title);
    for word in ["disable", "switch off", "uninstall"] {
        assert!(!format!("{finding:?}").contains(word), "{word}");
    }
}

#[test]
fn a_scanner_with_many_threads_is_not_a_queue() {
    let measured = Measured { scan: Some(scan(21, 1, &[21, 21, 22, 22, 23, 24])), ..usual_measurements() };
    let tree = tree_with_marks("clamonacc", "40000");
    expect_problem_with("scanners", &tree.machine(), &measured, &["ClamAV", "do not queue"]);
}

#[test]
fn a_scanner_without_a_cache_is_recognised_by_launches_from_memory() {
    let measured = Measured { scan: Some(scan(21, 21, &[20, 40, 60, 80, 100, 120])), ..usual_measurements() };
    let tree = tree_with_marks("guard", "10000");
    let finding = expect_problem_with("scanners", &tree.machine(), &measured, &["delays each launch", "they queue"]);
    assert_eq!(finding.effect.unwrap().span, Nanos(20_000_000));
}

#[test]
fn a_first_launch_that_does_not_end_is_a_problem_even_without_a_known_scanner() {
    let measured = Measured {
        scan: Some(Scan { stuck: Some(StuckOperation::Launch(Nanos(800_000_000))), ..Default::default() }),
        ..usual_measurements()
    };
    let machine = Tree::new().machine();
    let finding = expect_problem_with("scanners", &machine, &measured, &["did not finish within"]);
    assert!(finding.effect.is_some_and(|effect| effect.is_lower_bound));
    expect_problem_with(
        "scanners",
        &tree_with_marks("guard", "10000").machine(),
        &measured,
        &["guard", "did not finish within"],
    );
}

#[test]
fn a_delay_is_reported_without_marks_and_a_known_daemon_is_only_evidence() {
    let unknown = Tree::new().process(7, 1, "bash", 1);
    expect_problem_with(
        "scanners",
        &unknown.machine(),
        &with_slow_first_launches(),
        &["an unknown program scans the file"],
    );
    // The kernel truncates the name `falcon-sensor-bpf` to the second one.
    for name in ["falcon-sensor", "falcon-sensor-b"] {
        let known = Tree::new().process(7, 1, name, 1);
        let words = ["an unknown program scans the file", "CrowdStrike"];
        expect_problem_with("scanners", &known.machine(), &with_slow_first_launches(), &words);
        expect_nothing("scanners", &known.machine(), &usual_measurements());
    }
}

#[test]
fn on_a_busy_machine_only_longer_delays_count_as_a_scan_or_a_queue() {
    for (first, is_disturbed, is_scan, is_queue) in
        [(2, false, true, true), (2, true, false, false), (5, true, true, false), (11, true, true, true)]
    {
        let mut scan = scan(first, 1, &[40, 40, 40, 40, 40, 40]);
        scan.is_disturbed = is_disturbed;
        let measured = Measured { scan: Some(scan), ..usual_measurements() };
        let found = diagnose("scanners", &Tree::new().machine(), &measured).findings;
        assert_eq!(found.len(), usize::from(is_scan), "{found:?}");
        let found = format!("{found:?}");
        assert_eq!(found.contains("an unknown program scans the file"), is_scan, "{found}");
        assert_eq!(found.contains("they queue"), is_queue, "{found}");
    }
}

fn with_few_launches(first: u64, count: usize, is_disturbed: bool) -> Measured {
    let mut scan = scan(first, 1, &[]);
    scan.first_launches.truncate(count);
    scan.later_launches.truncate(count);
    scan.is_disturbed = is_disturbed;
    Measured { scan: Some(scan), ..usual_measurements() }
}

#[test]
fn too_few_launches_are_reported_as_not_examined() {
    let machine = Tree::new().machine();
    for (first, count, is_disturbed, why) in
        [(21, 1, true, "too busy"), (21, 2, false, "too few"), (5, 4, false, "too few")]
    {
        let measured = with_few_launches(first, count, is_disturbed);
        let diagnosis = diagnose("scanners", &machine, &measured);
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.not_examined[0].what.contains(why), "{diagnosis:?}");
    }
    for (from_memory, why) in [(1, "too few"), (0, "cannot execute files from memory")] {
        let mut scan = scan(1, 1, &[]);
        scan.memory_launches.truncate(from_memory);
        let measured = Measured { scan: Some(scan), ..usual_measurements() };
        let diagnosis = diagnose("scanners", &machine, &measured);
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.not_examined[0].what.contains(why), "{diagnosis:?}");
    }
    // For delays this long, two launches are enough, because there is no time for more.
    let long = with_few_launches(200, 2, false);
    expect_problem_with("scanners", &machine, &long, &["200 ms to 200 ms"]);
    let none = with_few_launches(21, 0, true);
    let tree = tree_with_marks("guard", "10000");
    let diagnosis = diagnose("scanners", &tree.machine(), &none);
    assert!(!diagnosis.findings[0].evidence.join(" ").contains(" - "), "{diagnosis:?}");
}

#[test]
fn one_fast_first_launch_rules_out_a_scanner() {
    let mut scan = scan(21, 1, &[]);
    scan.first_launches[3] = scan.later_launches[0];
    let measured = Measured { scan: Some(scan), ..usual_measurements() };
    expect_nothing("scanners", &Tree::new().machine(), &measured);
}

#[test]
fn permission_marks_without_a_delay_are_a_note() {
    expect_note("scanners", &tree_with_marks("guard", "10000").machine(), &["guard (process 7)"]);
}

#[test]
fn notification_marks_delay_no_opens() {
    // FAN_OPEN, FAN_CLOSE and FAN_ONDIR, as an indexer uses them.
    expect_nothing("scanners", &tree_with_marks("indexer", "40000038").machine(), &usual_measurements());
    let blind = Measured { scan: None, ..usual_measurements() };
    let diagnosis = diagnose("scanners", &Tree::new().machine(), &blind);
    assert_eq!(diagnosis.not_examined.len(), 1, "{diagnosis:?}");
}

#[test]
fn a_process_that_has_just_ended_does_not_count_as_hidden() {
    let tree = Tree::new().file("proc/9/status", "Name:\tother\nPPid:\t1\n");
    expect_nothing("scanners", &tree.machine(), &usual_measurements());
}

#[test]
fn hidden_processes_and_the_host_of_a_container_are_not_examined() {
    let hidden = Tree::new().file("proc/self/mountinfo", "1 0 0:1 / /proc rw - proc proc rw,hidepid=invisible\n");
    let not_examined = diagnose("scanners", &hidden.machine(), &usual_measurements()).not_examined;
    assert!(not_examined[0].what.contains("other users"), "{not_examined:?}");
    let inside = Tree::new().file(".dockerenv", "");
    let not_examined = diagnose("scanners", &inside.machine(), &usual_measurements()).not_examined;
    assert!(not_examined[0].what.contains("the host"), "{not_examined:?}");
}
