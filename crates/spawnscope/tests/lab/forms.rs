//! The output formats of the report. What tables and pages contain is tested with the code that
//! writes them.

use crate::bench::{bench, bench_command};
use crate::support::prelude::*;

const NAMES: &str = "mechanisms parent-size runtimes growth open-fds child-kind loader first-launch";

#[apply(live_test)]
fn the_list_names_every_experiment() {
    let listed = spawnscope(["bench", "--list"]).expect_code(0).output();
    // A description that does not fit continues in an indented line.
    let names = listed.lines().filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = names.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names.join(" "), NAMES);
    let listed = spawnscope(["bench", "--list", "--json"]).expect_code(0);
    let experiments = listed.json()["experiments"].clone();
    let names = experiments.as_array().expect("experiments").iter();
    let names: Vec<&str> = names.filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names.join(" "), NAMES);
    assert!(experiments[0]["about"].is_string());
}

#[apply(live_test)]
fn json_describes_the_machine_and_the_measurement() {
    let finished = bench(&["--json", "open-fds", "growth", "growth", "--max", "3M"]);
    assert_eq!(finished.errors(), "", "progress is shown only on a terminal");
    let report = finished.json();
    assert_eq!(report["schema_version"], 2);
    assert_eq!(report["quick"], true);
    assert_eq!(report["interrupted"], false);
    assert!(report["machine"]["kernel"].as_str() > Some(""));
    assert!(report["machine"]["cpus"].as_u64() > Some(0));
    assert_eq!(report["seconds"], 0.01);
    for fact in ["load_before", "load_after"] {
        assert!(report["machine"][fact].is_number(), "{fact} in {}", report["machine"]);
    }
    let experiments = report["experiments"].as_array().expect("experiments");
    let names: Vec<&str> = experiments.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["open-fds", "growth"], "in the requested order, each once");
    for experiment in experiments {
        assert!(experiment["rows"].is_array() && experiment["notes"].is_array());
        let columns = experiment["columns"].as_array().expect("columns");
        let names: Vec<&str> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
        let row = experiment["rows"][0].as_object().expect("an object");
        assert!(names.iter().all(|name| row.contains_key(*name)), "{names:?}");
    }
    let largest = experiments[1]["rows"].as_array().expect("rows").last().expect("a row");
    assert_eq!(largest["parent_bytes"], 2 << 20, "--max is respected");
}

#[apply(live_test)]
fn standard_output_has_one_form() {
    spawnscope(["bench", "growth", "-o", "-", "--json"]).expect_code(125).expect_errors(["only one form"]);
}

#[apply(live_test)]
fn a_file_that_cannot_be_written_is_an_error_before_measuring() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = directory.path().join("missing/page.html");
    let page = page.to_str().expect("a path of characters");
    let finished = run(&mut bench_command(&["--json", "-o", page, "growth"])).expect_code(125);
    assert_eq!(finished.output(), "", "nothing was measured");
    let failure = format!("failed to create {page}");
    finished.expect_errors([&failure]);
}
