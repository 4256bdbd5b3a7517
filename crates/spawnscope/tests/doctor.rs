//! The doctor's output for a machine with several problems, and for a healthy one.
//! SNAPSHOTS=overwrite updates the snapshots.

#[expect(dead_code, reason = "shared with the tests of spawnscope-doctor, which use the rest")]
#[path = "../../spawnscope-doctor/tests/doctor/tree.rs"]
mod tree;

use spawnscope::doctor::{Diagnosis, Load, Measured, NotExamined, checks, examine};
use spawnscope::event::Nanos;
use spawnscope::present::doctor;
use tree::{Tree, scan, usual_measurements};

use crate::golden::assert_golden;

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn healthy_tree() -> Tree {
    Tree::new()
        .file("proc/self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/vda rw\n")
        .file("proc/self/status", "Name:\tx\nUid:\t0\t0\t0\t0\nSeccomp:\t0\n")
        .file("proc/self/limits", "Max open files            1024                 1048576              files\n")
        .file("proc/meminfo", "MemTotal: 8000000 kB\nSwapTotal: 0 kB\n")
        .file("proc/loadavg", "0.1 0.1 0.1 1/100 200\n")
        .file("proc/cpuinfo", "flags\t: fpu vme\n")
        .directory("bin")
        .directory("tmp")
}

fn diagnosis_with_problems() -> Diagnosis {
    let tree = healthy_tree()
        .process(7, 1, "fapolicyd", 1)
        .link("proc/7/fd/3", "anon_inode:[fanotify]")
        .file("proc/7/fdinfo/3", "fanotify mnt_id:12 mflags:0 mask:50000 ignored_mask:0\n")
        .file("lib64/ld-linux-x86-64.so.2", "")
        .file("proc/self/cgroup", "0::/\n");
    let measured = Measured { scan: Some(scan(21, 1, &[20, 40, 60, 80, 100, 120])), ..usual_measurements() };
    let machine = tree.machine().with_variable("LD_PRELOAD", "/opt/\u{1b}[31mspy.so").with_variable("PATH", "/gone");
    let measured = Measured { without_loader_variables: Some(Nanos(500_000)), ..measured };
    let mut diagnosis = examine(&machine, &measured, &checks::ALL.each_ref());
    // The number of CPUs was that of the machine that runs the test.
    diagnosis.load.as_mut().unwrap().cpus = 2;
    diagnosis
}

#[test]
fn problems_are_shown_in_full_and_notes_only_on_request() {
    let diagnosis = diagnosis_with_problems();
    assert!(diagnosis.has_problems());
    let text = doctor::render(&diagnosis, true, 80);
    assert!(plain(&text).lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_golden(&plain(&text), "doctor.txt");
    assert_golden(&doctor::json(&diagnosis), "doctor.json");
    let short = plain(&doctor::render(&diagnosis, false, 80));
    assert!(short.contains("\n  `spawnscope doctor --full` also prints evidence, "), "{short}");
    let narrow = plain(&doctor::render(&diagnosis, true, 40));
    // Only command lines, which are never wrapped, may be longer.
    let mut other_lines = narrow.lines().filter(|line| !line.starts_with("       "));
    assert!(other_lines.all(|line| line.chars().count() <= 40), "{narrow}");
}

#[test]
fn a_healthy_machine_takes_one_line_with_the_cost_of_a_launch() {
    let tree = healthy_tree();
    let machine = tree.machine().with_variable("PATH", "/bin");
    let mut diagnosis = examine(&machine, &usual_measurements(), &checks::ALL.each_ref());
    assert!(diagnosis.findings.is_empty(), "{diagnosis:#?}");
    assert!(diagnosis.not_examined.is_empty(), "{diagnosis:#?}");
    let text = plain(&doctor::render(&diagnosis, false, 80));
    assert_eq!(text, "no problems found: fork 200 us, static exec 300 us, dynamic exec 700 us\n");
    diagnosis.not_examined.push(NotExamined { check: "scanners", what: "fresh files".to_owned() });
    let text = plain(&doctor::render(&diagnosis, false, 80));
    assert!(text.contains("\n  `spawnscope doctor --full` also prints 1 item that could not be checked\n"), "{text}");
    diagnosis.is_complete = false;
    let text = plain(&doctor::render(&diagnosis, false, 80));
    assert!(text.starts_with("no problems found by these checks: fork"), "{text}");
    // A launch that could not be timed might be a problem.
    diagnosis.launch.fork = None;
    diagnosis.load = Some(Load { average: 5.24, cpus: 2 });
    let text = plain(&doctor::render(&diagnosis, false, 80));
    assert!(text.contains("no problems found by these checks, but not all launches could be timed"), "{text}");
    assert!(text.contains("busy (load 5.2 on 2 CPUs)"), "{text}");
}

#[test]
fn checks_have_unique_names_and_are_listed() {
    let mut ids: Vec<&str> = checks::ALL.iter().map(|check| check.id).collect();
    let listed = plain(&doctor::list(&checks::ALL, 80));
    assert!(ids.iter().all(|id| listed.contains(&format!("{id} "))), "{listed}");
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    let json: serde_json::Value = serde_json::from_str(&doctor::list_json(&checks::ALL)).unwrap();
    let named = json["checks"].as_array().unwrap().iter();
    let named: Vec<&str> = named.map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(named, ids);
    assert!(json["checks"][0]["about"].as_str().is_some_and(|about| about.contains("fanotify")));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), checks::ALL.len());
}
