//! Runs each experiment alone: its rows exist, each with an interval, and values that must be
//! larger than others are.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bench::{notes, rows, rows_with, run_experiment};
use crate::support::prelude::*;

/// Returns the values of a key column. Also checks that each measurement is an estimate with an
/// interval.
fn keys(experiment: &Value, key: &str) -> BTreeSet<String> {
    let text = notes(experiment);
    assert!(!text.contains("invalid measurement") && !text.contains("failed to"), "{text}");
    let columns = experiment["columns"].as_array().expect("columns");
    for row in rows(experiment) {
        for column in columns {
            let name = column["name"].as_str().expect("a name");
            let value = &row[name];
            if column["is_key"] == true || value.is_null() || value.is_number() {
                continue;
            }
            let [low, median, high] = ["low", "median", "high"].map(|part| value[part].as_f64().expect(name));
            assert!(low <= median && median <= high, "{name} of {row}");
            assert!(value["rounds"].as_u64().expect("rounds") >= 6, "{name} of {row}");
        }
    }
    rows(experiment).iter().map(|row| row[key].as_str().map_or_else(|| row[key].to_string(), str::to_owned)).collect()
}

#[track_caller]
fn assert_all(found: &BTreeSet<String>, wanted: &[&str]) {
    for name in wanted {
        assert!(found.contains(*name), "{name} in {found:?}");
    }
}

/// Returns the lower end of the interval of a measurement.
fn lower_bound(row: &Value, measure: &str) -> f64 {
    row[measure]["low"].as_f64().expect("an interval")
}

#[apply(live_test)]
fn mechanisms_has_every_way_to_create_a_process() {
    let experiment = run_experiment("mechanisms");
    let found = keys(&experiment, "mechanism");
    assert_eq!(found.len(), 14, "{found:?}");
    assert_all(&found, &["fork + _exit", "clone3", "popen", "vspawn, pipe", "vspawn, detached"]);
    let are_unknown = notes(&experiment).contains("user and system are unknown");
    for row in rows(&experiment) {
        assert!(lower_bound(row, "cpu_ns") > 0.0, "{row}");
        for part in ["user_ns", "system_ns"] {
            // Known for all rows or for none.
            assert_eq!(row[part].is_null(), are_unknown, "{row}");
            assert!(are_unknown || lower_bound(row, part) > 0.0, "{row}");
        }
        assert!(lower_bound(row, "call_ns") > 0.0, "{row}");
    }
    // All short launches are repeated equally often.
    let counts = rows(&experiment).iter().map(|row| row["launches"].as_u64());
    let counts: BTreeSet<u64> = counts.map(|count| count.expect("a number")).collect();
    let repeated = counts.iter().filter(|count| **count > 1);
    assert_eq!(repeated.count(), 1, "{counts:?}");
    let base = rows_with(&experiment, &[("mechanism", "vfork + exec")])[0];
    let ratio = &base["ratio"];
    assert_eq!(["low", "high"].map(|end| ratio[end].as_f64()), [Some(1.0); 2]);
}

#[apply(live_test)]
fn parent_size_shows_that_fork_copies_page_tables() {
    let experiment = run_experiment("parent-size");
    let found = keys(&experiment, "mechanism");
    assert_all(&found, &["fork + exec", "posix_spawn, pipe", "vspawn, detached", "bash runs true"]);
    assert_eq!(found.len(), 15, "every mechanism, and bash: {found:?}");
    let text = notes(&experiment);
    let has_huge_pages = rows(&experiment).iter().any(|row| row["memory"] == "huge pages");
    assert!(has_huge_pages || text.contains("huge pages, "), "neither rows nor a note about huge pages: {text}");
    let forks = rows_with(&experiment, &[("mechanism", "fork + _exit"), ("memory", "")]);
    let sizes: Vec<f64> = forks.iter().filter_map(|row| row["parent_bytes"].as_f64()).collect();
    assert_eq!(sizes, [0.0, 16e6, 32e6, 64e6]);
    assert!(lower_bound(forks[3], "wall_ns") > lower_bound(forks[0], "wall_ns"), "page tables are copied");
    // On a very busy machine there may be no slope; then a note says so.
    for name in ["fork + _exit", "fork + exec"] {
        let fits = experiment["fits"].as_array().expect("fits");
        match fits.iter().find(|fit| fit["series"] == name) {
            Some(fit) => {
                let [low, high] = [0, 1].map(|end| fit["slope_interval_ns"][end].as_f64().expect("a slope"));
                assert!(fit["per"] == "MB" && low <= high && low * high > 0.0, "{fit}");
            }
            None => assert!(text.contains("no slope beyond the noise: "), "{name}: {text}"),
        }
    }
}

/// Takes 10 to 20 s, because compilers build launchers and each runtime is started five times. Only
/// that shows that each launcher works, and how its runtime creates processes.
#[apply(live_test)]
#[needs(Python, Perl, Node)]
fn runtimes_names_how_each_creates_processes() {
    let experiment = run_experiment("runtimes");
    let text = notes(&experiment);
    for (runtime, creations) in [
        ("bash ", &["fork"][..]),
        ("Perl ", &["fork"]),
        ("Python ", &["vfork", "posix_spawn", "fork"]),
        ("Node ", &["fork", "vfork", "posix_spawn"]),
    ] {
        let is_its = |row: &&Value| row["runtime"].as_str().is_some_and(|name| name.starts_with(runtime));
        let rows: Vec<&Value> = rows(&experiment).iter().filter(is_its).collect();
        assert_eq!(rows.len(), 4, "{runtime}: a row for each size: {text}");
        assert!(rows.iter().all(|row| lower_bound(row, "wall_ns") > 0.0), "{rows:?}");
        let [name, creation] = ["runtime", "creation"].map(|key| rows[0][key].as_str().expect(key));
        assert!(creations.contains(&creation), "{name}: {creation}");
        let noted =
            text.lines().find(|line| line.contains(": fork, which copies the page tables")).expect("bash forks");
        assert_eq!(noted.contains(name), creation == "fork", "{name}: {text}");
    }
}

#[apply(live_test)]
fn open_fds_has_mechanisms_that_copy_close_and_share_them() {
    let experiment = run_experiment("open-fds");
    let found = keys(&experiment, "mechanism");
    assert_all(&found, &["fork + exec", "vspawn", "vspawn, close_others"]);
    assert_eq!(rows(&experiment).len(), 2 * found.len());
}

#[apply(live_test)]
#[needs(Cc)]
fn loader_has_libraries_and_searches_and_child_kind_compiled_children() {
    assert_all(&keys(&run_experiment("child-kind"), "child"), &["no library", "C, dynamic, pie", "true"]);
    let experiment = run_experiment("loader");
    let found = keys(&experiment, "loading");
    assert_all(&found, &["true, LD_LIBRARY_PATH", "run path, now"]);
    assert_all(&found, &["absolute names, lazy", "directory per library, lazy"]);
    assert_eq!(rows_with(&experiment, &[("loading", "run path, lazy")]).len(), 2);
    assert_eq!(rows_with(&experiment, &[("loading", "true, LD_LIBRARY_PATH")]).len(), 4);
    assert!(notes(&experiment).contains("each library has"));
}

#[apply(live_test)]
fn first_launch_has_the_first_and_the_second_launch() {
    let experiment = run_experiment("first-launch");
    assert_all(&keys(&experiment, "program"), &["tiny", "true", "tiny, in memory"]);
    for row in rows(&experiment) {
        let [first, last] = ["first_ns", "first_last_ns"].map(|column| lower_bound(row, column));
        assert!(last >= first, "{row}");
        assert!(lower_bound(row, "second_ns") > 0.0, "{row}");
    }
}
