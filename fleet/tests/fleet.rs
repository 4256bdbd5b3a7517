//! Tests the program on datasets that fleet/generate.py makes from real recordings: it finds the injected changes, and nothing else; errors say what
//! to do. The generator needs the interpreter of scripts/python-environment.sh (`parquet`).

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/base");

fn fleet(arguments: &[&str], dataset: &Path) -> Output {
    // The dataset follows the verb, because a query comes last.
    let (verb, rest) = arguments.split_first().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope-fleet"));
    command.arg(verb).arg(dataset).args(rest).output().unwrap()
}

fn printed(arguments: &[&str], dataset: &Path) -> String {
    let output = fleet(arguments, dataset);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str], dataset: &Path) -> Vec<Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&printed(&arguments, dataset)).unwrap()
}

fn failure(arguments: &[&str], dataset: &Path) -> String {
    let output = fleet(arguments, dataset);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Generates a fortnight of 10 jobs on 8 machines. The dataset is small, because the engine is slow without optimization.
fn generated(more: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let dataset = directory.path().join("dataset");
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = package.parent().unwrap().join("target/venv/bin/python");
    assert!(python.exists(), "{} is missing: run scripts/python-environment.sh", python.display());
    let status = Command::new(python)
        .arg(package.join("generate.py"))
        .args([BASE.as_ref(), dataset.as_path()])
        .args(["--runs", "140", "--jobs", "10", "--machines", "8", "--launches", "20000"])
        .args(more)
        .status();
    assert!(status.unwrap().success());
    (directory, dataset)
}

/// Returns a dataset with an expensive line from day 9 on, and a slow machine.
fn injected() -> &'static Path {
    static DATASET: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    &DATASET.get_or_init(|| generated(&["--regression", "--slow-machine"])).1
}

#[test]
fn only_the_line_that_became_expensive_is_reported() {
    let found = json(&["regressions", "--since", "2026-11-09"], injected());
    assert_eq!(found.len(), 1, "{found:?}");
    let row = &found[0];
    assert_eq!((&row["file"], &row["line"], &row["command"]), (&"/ci/build.sh".into(), &41.into(), &"git".into()));
    assert_eq!((row["launches_before"].as_f64(), row["launches_after"].as_f64()), (Some(0.0), Some(40.0)));
    // 40 launches of 2 ms.
    let critical = row["critical_after_ns"].as_f64().unwrap();
    let half_width = row["critical_half_width_ns"].as_f64().unwrap();
    assert!((critical - 80e6).abs() < 2.0 * half_width && half_width < 2e6, "{critical} +- {half_width}");
    let text = printed(&["regressions", "--since", "2026-11-09"], injected());
    assert!(text.contains("git from /ci/build.sh:41: 0.0 -> 40.0 launches per run in"), "{text}");
}

#[test]
fn a_commit_stands_for_the_time_of_its_first_run() {
    let by_date = json(&["regressions", "--since", "2026-11-09"], injected());
    // The beginning of the generator's commit of day 9.
    let by_commit = json(&["regressions", "--since", "c0ffee08"], injected());
    // The last digits of sums of floating-point numbers depend on the order.
    assert_eq!((by_date.len(), by_commit.len()), (1, 1));
    for column in ["file", "line", "command", "jobs", "launches_after"] {
        assert_eq!(by_date[0][column], by_commit[0][column]);
    }
}

#[test]
fn only_the_slow_machine_is_an_outlier() {
    let found = json(&["machines"], injected());
    assert_eq!(found.len(), 8);
    let outliers: Vec<&Value> = found.iter().filter(|row| row["is_outlier"] == 1).collect();
    assert_eq!(outliers.len(), 1, "{outliers:?}");
    assert_eq!(outliers[0]["host"], "machine-07");
    let ratio = outliers[0]["against_others"].as_f64().unwrap();
    let half_width = outliers[0]["half_width"].as_f64().unwrap();
    assert!((ratio - 1.5).abs() < 2.0 * half_width, "{ratio} +- {half_width}");
}

#[test]
fn the_latest_findings_of_the_doctor_are_shown_for_the_slow_machine() {
    let text = printed(&["machines"], injected());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // The later of the two examinations, with all of its findings.
    assert!(words.contains("`spawnscope doctor` found there on 2026-11-13: 1 problem, 6 notes"), "{text}");
    assert!(words.contains("What `spawnscope doctor` found on machine-07 on 2026-11-13 1. "), "{text}");
    assert!(!words.contains("2026-11-04"), "{text}");
    let rows = json(&["machines"], injected());
    let [unexamined, examined] =
        ["machine-06", "machine-07"].map(|host| &rows.iter().find(|row| row["host"] == host).unwrap()["doctor"]);
    assert_eq!(unexamined, &Value::Null);
    assert_eq!(examined["date"], "2026-11-13");
    let findings = examined["findings"].as_array().unwrap();
    assert_eq!(findings[0]["severity"], "problem");
    for finding in findings {
        let title = finding["title"].as_str().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let is_shown = words.contains(&title);
        assert_eq!(is_shown, finding["severity"] != "unseen", "{title}: {text}");
    }
    let all = json(&["doctor"], injected());
    assert_eq!(all.len(), findings.len());
    assert!(printed(&["doctor"], injected()).contains("1 machine was examined: 1 problem, 6 notes"));
}

#[test]
fn an_outlier_that_was_not_examined_is_shown_with_the_command_to_run() {
    // Without the doctor's table, as in a dataset of an earlier version.
    let directory = tempfile::tempdir().unwrap();
    let dataset = directory.path().join("older");
    fs::create_dir(&dataset).unwrap();
    for table in ["runs", "launches", "execs", "callers", "waits", "advice"] {
        std::os::unix::fs::symlink(injected().join(table), dataset.join(table)).unwrap();
    }
    let text = printed(&["machines"], &dataset);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let command = format!("was not run there: run `spawnscope doctor -o {}` on it", dataset.display());
    assert!(words.contains(&command), "{text}");
    assert!(json(&["machines"], &dataset).iter().all(|row| row["doctor"].is_null()));
    assert!(json(&["doctor"], &dataset).is_empty());
    assert!(printed(&["doctor"], &dataset).contains("No machine was examined"));
}

#[test]
fn without_a_change_nothing_is_reported() {
    let (_directory, dataset) = generated(&["--seed", "2"]);
    assert!(json(&["regressions", "--since", "2026-11-09"], &dataset).is_empty());
    assert!(json(&["machines"], &dataset).iter().all(|row| row["is_outlier"] == 0));
    let text = printed(&["regressions", "--since", "2026-11-09"], &dataset);
    assert!(text.contains("Nothing changed since 2026-11-09 beyond noise."), "{text}");
    assert!(printed(&["machines"], &dataset).contains("No machine's launches cost clearly more or less"));
}

#[test]
fn with_one_machine_there_is_nothing_to_compare() {
    assert!(printed(&["machines"], Path::new(BASE)).contains("Nothing to compare"));
}

#[test]
fn answers_add_up_all_launches() {
    let dataset = injected();
    let total = json(&["sql", "SELECT COUNT(*) AS launches, SUM(critical_ns) AS critical FROM launches"], dataset);
    for by in ["command", "label:job", "label:host", "label:test", "label:cmake"] {
        let arguments = &["top", "--by", by, "--rows", "100"];
        let rows = json(arguments, dataset);
        for (column, total_column) in [("launches", "launches"), ("critical_ns", "critical")] {
            let sum: i64 = rows.iter().filter_map(|row| row[column].as_i64()).sum();
            assert_eq!(Some(sum), total[0][total_column].as_i64(), "{arguments:?}");
        }
    }
    let days = json(&["trend"], dataset);
    assert_eq!(days.len(), 14);
    let launches: i64 = days.iter().filter_map(|day| day["launches"].as_i64()).sum();
    assert_eq!(Some(launches), total[0]["launches"].as_i64());
}

#[test]
fn top_is_ordered_as_requested() {
    for (order, column) in [("critical", "critical_ns"), ("saving", "saving_ns"), ("count", "launches")] {
        let rows = json(&["top", "--order", order], Path::new(BASE));
        let figures: Vec<i64> = rows.iter().map(|row| row[column].as_i64().unwrap_or(i64::MIN)).collect();
        assert!(figures.len() > 3 && figures.is_sorted_by(|one, next| one >= next), "{order}: {figures:?}");
    }
    assert!(failure(&["top", "--by", "command", "--order", "saving"], Path::new(BASE)).contains("use --by line"));
}

#[test]
fn each_answer_can_be_printed_and_written_as_a_page_that_loads_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["top"][..], &["trend"], &["advice"], &["machines"], &["doctor"]] {
        // The recordings in BASE are of one machine, so there is nothing to compare.
        let dataset = if arguments[0] == "machines" { injected() } else { Path::new(BASE) };
        assert!(printed(arguments, dataset).lines().count() > 3, "{arguments:?}");
        let file = directory.path().join("page.html");
        let with_page: Vec<&str> = arguments.iter().copied().chain(["--html", file.to_str().unwrap()]).collect();
        assert_eq!(printed(&with_page, dataset), "");
        let page = fs::read_to_string(&file).unwrap();
        assert!(page.contains("<td") && !page.contains("://"), "{arguments:?}: {page}");
    }
}

#[test]
fn only_queries_are_run() {
    let error = failure(&["sql", "CREATE TABLE x AS SELECT 1"], Path::new(BASE));
    assert!(error.contains("DDL"), "{error}");
    let error = failure(&["sql", "COPY runs TO '/tmp/never.csv'"], Path::new(BASE));
    assert!(error.contains("DML"), "{error}");
    assert!(failure(&["sql", "SELECT nothing FROM runs"], Path::new(BASE)).contains("nothing"));
}

#[test]
fn errors_about_bad_input_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let base = Path::new(BASE);
    assert!(failure(&["top"], &directory.path().join("missing")).contains("failed to open dataset"));
    assert!(failure(&["top"], directory.path()).contains("spawnscope export --format parquet"));
    for table in ["runs", "launches", "execs", "callers", "waits", "advice"] {
        fs::create_dir(directory.path().join(table)).unwrap();
    }
    assert!(failure(&["top"], directory.path()).contains("no recording yet"));
    let partition = directory.path().join("runs/date=2026-11-01/job=x");
    fs::create_dir_all(&partition).unwrap();
    fs::write(partition.join("a.parquet"), "no parquet").unwrap();
    assert!(failure(&["top"], directory.path()).contains("a.parquet"));
    assert!(failure(&["regressions", "--since", "deadbeef"], base).contains("no run has such a commit"));
    assert!(failure(&["regressions", "--since", "' OR 1"], base).contains("give a date"));
    assert!(failure(&["regressions", "--since", "1999-01-01"], base).contains("a comparison needs runs on both sides"));
}
