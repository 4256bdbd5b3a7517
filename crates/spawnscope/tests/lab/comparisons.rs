//! Comparisons of a report with an older one: the output in every form, and what cannot be compared or replaced.

use std::process::Command;

use serde_json::{Value, json};

use crate::bench::{STORED, bench_command};
use crate::forms::NAMES;
use crate::support::run::{Finished, SPAWNSCOPE, run, spawnscope};
use crate::support::texts::{assert_contains, unwrapped};
use crate::support::{apply, live_test};

/// Returns a report of seven cases with these walls, and intervals of ± `noise`.
fn stored_report(walls: [f64; 7], noise: f64) -> Value {
    let stored = std::fs::read(STORED).expect("the stored report");
    let mut report: Value = serde_json::from_slice(&stored).expect("JSON");
    report["experiments"].as_array_mut().expect("experiments").truncate(1);
    let mut rows = Vec::new();
    for (number, wall) in walls.into_iter().enumerate() {
        let [wall, call] = [wall, 5.0 * noise]
            .map(|median| json!({"median": median, "low": median - noise, "high": median + noise, "rounds": 9}));
        rows.push(json!({"mechanism": format!("number {number}"), "wall_ns": wall, "call_ns": call}));
    }
    report["experiments"][0]["rows"] = json!(rows);
    report
}

/// Returns the output of a comparison of two reports.
fn compare(old: &Value, new: &Value, arguments: &[&str], columns: usize) -> String {
    run_comparison(old, new, arguments, columns).expect_code(0).output()
}

/// Writes two reports to files, and compares them.
fn run_comparison(old: &Value, new: &Value, arguments: &[&str], columns: usize) -> Finished {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = [("old.json", old), ("new.json", new)].map(|(name, report)| {
        let path = directory.path().join(name);
        std::fs::write(&path, report.to_string()).expect("written");
        path
    });
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["bench", "--compare"]).arg(&paths[0]);
    command.arg("--with").arg(&paths[1]);
    run(command.args(arguments).env("COLUMNS", columns.to_string()))
}

const WALLS: [f64; 7] = [1e5, 2e5, 3e5, 4e5, 5e5, 6e5, 7e5];

#[apply(live_test)]
fn a_comparison_separates_the_common_shift_from_cases_that_stand_apart() {
    let old = stored_report(WALLS, 500.0);
    // All cases became slower by a tenth; one really changed.
    let drifted = [1.1, 1.11, 1.09, 1.1, 2.2, 1.1, 1.12];
    let walls: Vec<f64> = WALLS.iter().zip(drifted).map(|(wall, factor)| wall * factor).collect();
    let mut new = stored_report(walls.try_into().expect("seven"), 500.0);
    new["quick"] = json!(true);
    let json = run_comparison(&old, &new, &["--json"], 80).expect_code(0).json();
    let found = &json["comparison"];
    let changes = found["changes"].as_array().expect("changes");
    assert_eq!(changes.len(), 14, "both measured columns");
    let apart: Vec<&Value> = changes.iter().filter(|change| change["stands_out"] == true).collect();
    assert_eq!(apart.len(), 1, "{apart:?}");
    assert_eq!(apart[0]["keys"], json!({"mechanism": "number 4"}));
    let common_shift = &found["movements"][0];
    assert_eq!(common_shift["column"], "wall_ns");
    assert_eq!(common_shift["cases"], 7);
    let printed = compare(&old, &new, &[], 80);
    for text in [
        "not under the same conditions: quick: no -> yes",
        "mechanisms: wall 1.10x",
        "500 us -> 1.10 ms    mechanisms: number 4: wall",
        "14 measurements compared; 7 within the noise; 6 within the common shift",
    ] {
        assert!(unwrapped(&printed).contains(&unwrapped(text)), "{text} in\n{printed}");
    }
    let narrow = compare(&old, &new, &[], 40);
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
}

#[apply(live_test)]
fn reports_with_nothing_in_common_are_not_compared() {
    let old = stored_report(WALLS, 500.0);
    let mut strange = old.clone();
    strange["experiments"][0]["name"] = json!("another");
    let errors = run_comparison(&old, &strange, &[], 80).expect_code(125).errors();
    assert!(errors.contains("no experiment in common: the older one has mechanisms, the newer another"));
    let mut others = old.clone();
    for row in others["experiments"][0]["rows"].as_array_mut().expect("rows") {
        row["mechanism"] = json!(format!("another {}", row["mechanism"]));
    }
    let errors = run_comparison(&old, &others, &[], 80).expect_code(125).errors();
    assert!(errors.contains("no case in common"));
    // The missing experiment is detected before anything is measured.
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("old.json");
    std::fs::write(&path, old.to_string()).expect("written");
    let refused = run(bench_command(&["growth", "--compare"]).arg(path)).expect_code(125);
    assert_eq!(refused.output(), "");
}

#[apply(live_test)]
fn cases_that_only_the_older_report_has_are_listed() {
    let mut old = stored_report(WALLS, 500.0);
    let mut new = old.clone();
    let experiments = old["experiments"].as_array_mut().expect("experiments");
    experiments.push(experiments[0].clone());
    experiments[1]["name"] = json!("growth");
    let rows = new["experiments"][0]["rows"].as_array_mut().expect("rows");
    rows.pop();
    rows[0]["call_ns"] = json!(null);
    let sentences = [
        "only the older report has 1 experiment: growth",
        "only the older report has 1 case: mechanisms: number 6",
        "only the older report has 1 measurement: mechanisms: number 0: call",
    ];
    let printed = compare(&old, &new, &[], 80);
    assert_contains(&printed, sentences);
    let json = run_comparison(&old, &new, &["--json"], 80).expect_code(0).json();
    assert_eq!(
        json["comparison"]["gone"],
        json!([
            {"experiment": "mechanisms", "case": "number 0", "column": "call_ns"},
            {"experiment": "mechanisms", "case": "number 6", "column": null},
            {"experiment": "growth", "case": null, "column": null},
        ])
    );
}

#[apply(live_test)]
fn a_case_that_stands_apart_sets_the_requested_exit_status() {
    let old = stored_report(WALLS, 500.0);
    let mut walls = WALLS;
    walls[4] *= 2.0;
    let new = stored_report(walls, 500.0);
    run_comparison(&old, &new, &["--exit-code"], 80).expect_code(1);
    run_comparison(&old, &old, &["--exit-code"], 80).expect_code(0);
    compare(&old, &new, &[], 80);
    // With too few cases, the result is undecided.
    let mut few = old.clone();
    few["experiments"][0]["rows"].as_array_mut().expect("rows").truncate(2);
    let unknown = run_comparison(&few, &few, &["--exit-code"], 80).expect_code(125);
    unknown.expect_errors(["too few common cases"]);
}

#[apply(live_test)]
fn a_page_never_overwrites_a_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let stored = std::fs::read(STORED).expect("the stored report");
    let [old, new] = ["old", "new"].map(|name| {
        let path = directory.path().join(name);
        std::fs::write(&path, &stored).expect("written");
        path
    });
    for page in [&old, &new] {
        let mut compare = Command::new(SPAWNSCOPE);
        compare.arg("bench").arg("--compare").arg(&old).arg("--with").arg(&new);
        let refused = run(compare.arg("-o").arg(page)).expect_code(125);
        assert!(refused.errors().contains("one of the compared reports"));
        let measured = run(bench_command(&["growth", "-o"]).arg(page)).expect_code(125);
        measured.expect_errors(["is a report"]);
        assert!(std::fs::read(page).expect("still there") == stored);
    }
    let named = run(bench_command(&["growth", "-o"]).arg(directory.path().join("lab.json"))).expect_code(125);
    named.expect_errors(["-o writes HTML"]);
    assert!(!directory.path().join("lab.json").exists());
}

#[apply(live_test)]
fn the_run_that_the_guide_describes_can_be_read() {
    let finished = spawnscope(["bench", "--compare", STORED, "--with", STORED, "--json"]);
    let report = finished.expect_code(0).json();
    let experiments = report["experiments"].as_array().expect("experiments").iter();
    let names: Vec<&str> = experiments.filter_map(|one| one["name"].as_str()).collect();
    assert!(NAMES.split(' ').all(|name| names.contains(&name)), "{names:?}");
    assert_eq!(report["comparison"]["conditions"], json!([]));
    assert_eq!(report["comparison"]["unmatched"], 0);
}

#[apply(live_test)]
fn a_file_that_is_not_a_report_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("old.json");
    let no_report = "is not a report of `bench --json`";
    for (content, expected) in [
        ("", no_report),
        ("[]", no_report),
        ("{\"schema_version\": 1}", no_report),
        ("no JSON", no_report),
        ("{\"schema_version\": 9}", "is a report with schema_version 9, not 1"),
    ] {
        std::fs::write(&path, content).expect("written");
        let message = run(bench_command(&["growth", "--compare"]).arg(&path)).expect_code(125).errors();
        assert!(message.contains(expected), "{content}: {message}");
    }
}
