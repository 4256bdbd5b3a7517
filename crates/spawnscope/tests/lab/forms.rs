//! The output formats of the report: table, JSON, Markdown, CSV, and an HTML page with plots.

use crate::bench::{bench, bench_command, only_experiment};
use crate::support::run::{run, spawnscope};
use crate::support::texts::{assert_contains, unwrapped};
use crate::support::{apply, live_test};

pub const NAMES: &str = "mechanisms parent-size growth open-fds threads child-kind loader first-launch shell path-search shims runtimes \
                         throughput copy-on-write";

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
fn an_experiment_named_twice_is_run_once() {
    only_experiment(&bench(&["--json", "shell", "shell"]).json());
}

#[apply(live_test)]
fn json_describes_the_machine_and_the_measurement() {
    let finished = bench(&["--json", "shell", "growth", "--max", "3M"]);
    assert_eq!(finished.errors(), "", "progress is shown only on a terminal");
    let report = finished.json();
    assert_eq!(report["schema_version"], 1);
    assert_eq!(report["quick"], true);
    assert_eq!(report["interrupted"], false);
    assert!(report["machine"]["kernel"].as_str() > Some(""));
    assert!(report["machine"]["cpus"].as_u64() > Some(0));
    assert_eq!(report["seconds"], 0.01);
    for fact in ["load_before", "load_after", "most_open_files"] {
        assert!(report["machine"][fact].is_number(), "{fact} in {}", report["machine"]);
    }
    for fact in ["file_system", "sh"] {
        assert!(report["machine"][fact].is_string(), "{fact} in {}", report["machine"]);
    }
    let experiments = report["experiments"].as_array().expect("experiments");
    let names: Vec<&str> = experiments.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["shell", "growth"], "in the requested order");
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
fn tables_show_every_column_at_any_width() {
    let mut wide = String::new();
    for columns in [40, 66, 80, 120] {
        let mut command = bench_command(&["mechanisms", "path-search", "first-launch", "threads"]);
        let printed = run(command.env("COLUMNS", columns.to_string())).expect_code(0).output();
        for line in printed.lines() {
            let fits = line.chars().count() <= columns;
            assert!(fits && !line.ends_with(' '), "{columns}: {line}");
        }
        // Columns that do not fit are shown below the table.
        assert_contains(&unwrapped(&printed), ["vspawn, pipe", "cpu ratio", "published"]);
        assert_contains(&unwrapped(&printed), ["user", "system", "relative to vfork + exec"]);
        assert!(!printed.contains('…'), "{columns}:\n{printed}");
        wide = printed;
    }
    assert_contains(&wide, ["wall by misses", "not in this table: call"]);
    assert_contains(&wide, ["last of the first", "last of the second"]);
    assert!(!wide.contains('\u{1b}'), "colours are only for terminals");
}

#[apply(live_test)]
fn csv_has_a_line_for_each_measurement_with_its_keys() {
    let printed = bench(&["--csv", "shims", "path-search", "copy-on-write"]).output();
    let lines: Vec<Vec<String>> = printed.lines().map(fields).collect();
    assert_eq!(
        lines[0].join(","),
        "experiment,case,wrapper,search,folders,misses,mechanism,memory,parent_bytes,\
         measure,unit,median,low,high,rounds,note"
    );
    let walls = lines_with(&lines, "shims", "wall_ns");
    assert!(walls.len() >= 7 && walls[0][column(&lines, "wrapper")] == "none", "{printed}");
    for line in lines_with(&lines, "copy-on-write", "during_ns") {
        // In bytes, whatever the unit in the label of the case.
        assert_eq!(line[column(&lines, "parent_bytes")], "16000000");
    }
    let misses = lines_with(&lines, "path-search", "wall_ns");
    assert!(misses.iter().any(|line| line[column(&lines, "misses")] == "20"), "{printed}");
    let notes = lines_with(&lines, "shims", "note");
    assert!(notes.iter().any(|line| line[column(&lines, "note")].contains("version manager: a chain")), "{printed}");
}

fn column(lines: &[Vec<String>], name: &str) -> usize {
    lines[0].iter().position(|title| title == name).expect("a column")
}

fn lines_with<'l>(lines: &'l [Vec<String>], experiment: &str, measure: &str) -> Vec<&'l Vec<String>> {
    let column = column(lines, "measure");
    lines.iter().filter(|line| line[0] == experiment && line[column] == measure).collect()
}

/// Returns the fields of a CSV line, whose quoted fields must not contain quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for character in line.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => fields.last_mut().expect("a field").push(character),
        }
    }
    fields
}

#[apply(live_test)]
fn markdown_has_a_table() {
    let printed = bench(&["--markdown", "shell"]).output();
    assert_contains(&printed, ["## shell\n", "| shell | its command | wall |"]);
    let rows = printed.lines().filter(|line| line.starts_with('|'));
    let widths: Vec<usize> = rows.map(|line| line.matches('|').count()).collect();
    let are_equal = widths.iter().all(|width| *width == widths[0]);
    assert!(widths.len() > 3 && are_equal, "{printed}");
}

#[apply(live_test)]
fn the_page_is_well_formed_and_has_plots() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lab.html");
    bench(&["parent-size", "shell", "-o", path.to_str().expect("a path"), "--csv"]);
    let page = std::fs::read_to_string(path).expect("the page");
    assert_well_formed(&page);
    for format in ["wide", "narrow"] {
        assert_eq!(page.matches(&format!("<svg class=\"lab {format}\"")).count(), 2);
    }
    // The page and each plot.
    assert_eq!(page.matches("prefers-color-scheme:dark").count(), 5);
    for title in ["Launches by the parent's memory", "A tiny command with and without a shell"] {
        assert_eq!(page.matches(title).count(), 1, "{title}");
    }
    for text in [
        "bash, published",
        "huge pages",
        "<td>vspawn</td>",
        "<summary>every case</summary>",
        "<a href=\"#parent-size\">parent-size</a>: ",
        "<a href=\"#shell\">shell</a>: ",
        "s per experiment",
    ] {
        assert!(page.contains(text), "{text}");
    }
    for reference in ["http://", "https://", "<script", "<link", "src="] {
        let outside_of_names = page.replace("http://www.w3.org/", "");
        assert!(!outside_of_names.contains(reference), "{reference}");
    }
}

/// Checks that every tag is closed, in order.
pub fn assert_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap_or_else(|| panic!("unterminated tag: {tag}"));
        assert!(!text.contains('>'), "unescaped: {text}");
        let name = tag.split_whitespace().next().expect("a name");
        if let Some(closed) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.ends_with('/') && !name.starts_with('!') {
            open.push(name);
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[apply(live_test)]
fn the_page_can_go_to_standard_output_unless_another_form_does() {
    let page = bench(&["shell", "-o", "-"]).output();
    assert!(page.starts_with("<!DOCTYPE html>"), "{page}");
    assert_well_formed(&page);
    let refused = run(&mut bench_command(&["shell", "-o", "-", "--json"])).expect_code(125);
    refused.expect_errors(["only one form"]);
    assert!(!std::path::Path::new("-").exists());
}

#[apply(live_test)]
fn a_file_that_cannot_be_written_is_an_error_before_measuring() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = directory.path().join("missing/page.html");
    let page = page.to_str().expect("a path of characters");
    let finished = run(&mut bench_command(&["--json", "-o", page, "shell"])).expect_code(125);
    assert_eq!(finished.output(), "", "nothing was measured");
    let failure = format!("failed to create {page}");
    finished.expect_errors([&failure]);
}
