//! The forms of the report: table, JSON, Markdown, CSV, a page with plots, and the comparison with an older one.

use serde_json::json;

use crate::bench::{bench, command, report};
use crate::support::LiveTest;
use crate::support::run::{run, spawnscope};

pub fn tests() -> Vec<LiveTest> {
    let test = |name, run| LiveTest { name, needs: &[], run };
    vec![
        test("the_list_names_every_experiment", list),
        test("json_says_where_and_how_it_was_measured", json_contract),
        test("tables_fit_eighty_columns", table),
        test("csv_has_a_line_for_each_measurement", csv),
        test("markdown_has_a_table", markdown),
        test("the_page_is_well_formed_and_has_plots", page),
        test("a_comparison_tells_what_differs_beyond_the_noise", comparison),
        test("what_is_no_report_cannot_be_compared_with", not_a_report),
    ]
}

const NAMES: [&str; 14] = [
    "mechanisms",
    "parent-size",
    "growth",
    "open-fds",
    "threads",
    "child-kind",
    "loader",
    "first-launch",
    "shell",
    "path-search",
    "shims",
    "runtimes",
    "throughput",
    "copy-on-write",
];

fn list() {
    let listed = spawnscope(["bench", "--list"]).expect_code(0).output();
    let names: Vec<&str> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(names, NAMES);
}

fn json_contract() {
    let finished = bench(&["--json", "shell", "growth", "--max", "2M"]);
    assert_eq!(finished.errors(), "", "no progress off a terminal");
    let report = report(&finished);
    assert_eq!(report["schema_version"], 1);
    assert_eq!(
        (&report["quick"], &report["interrupted"]),
        (&json!(true), &json!(false))
    );
    assert!(
        report["machine"]["kernel"]
            .as_str()
            .is_some_and(|kernel| !kernel.is_empty())
    );
    assert!(report["machine"]["cpus"].as_u64() > Some(0));
    let experiments = report["experiments"].as_array().expect("experiments");
    let names: Vec<&str> = experiments.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["shell", "growth"], "as they were asked for");
    for experiment in experiments {
        assert!(experiment["rows"].is_array() && experiment["notes"].is_array());
        let columns = experiment["columns"].as_array().expect("columns");
        let names: Vec<&str> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
        let row = experiment["rows"][0].as_object().expect("an object");
        assert!(names.iter().all(|name| row.contains_key(*name)), "{names:?}");
    }
    let largest = experiments[1]["rows"].as_array().expect("rows").last().expect("a row");
    assert_eq!(largest["parent_bytes"].as_f64(), Some(1_048_576.0), "--max holds");
}

fn table() {
    let said = bench(&["mechanisms", "path-search", "first-launch"]).output();
    for line in said.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for text in [
        "mechanisms",
        "vspawn, pipe",
        "cpu ratio",
        "published",
        "wall by misses",
        "last of them",
    ] {
        assert!(said.contains(text), "{text} in\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "no colour off a terminal");
}

fn csv() {
    let said = bench(&["--csv", "shims"]).output();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "experiment,case,measure,unit,median,low,high,rounds");
    let walls: Vec<&&str> = lines.iter().filter(|line| line.contains(",wall_ns,nanos,")).collect();
    assert!(walls.len() >= 7, "{said}");
    assert!(walls[0].starts_with("shims,none,"));
}

fn markdown() {
    let said = bench(&["--markdown", "shell"]).output();
    assert!(
        said.contains("## shell\n") && said.contains("| shell | its command | wall |"),
        "{said}"
    );
    let widths: Vec<usize> = said
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.matches('|').count())
        .collect();
    assert!(
        widths.len() > 3 && widths.iter().all(|width| *width == widths[0]),
        "{said}"
    );
}

fn page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("lab.html");
    bench(&["parent-size", "shell", "-o", path.to_str().expect("a path"), "--csv"]);
    let page = std::fs::read_to_string(path).expect("the page");
    well_formed(&page);
    assert_eq!(page.matches("<svg").count(), 1, "shell has no chart");
    for text in ["published (story 2)", "huge pages", "<td>vspawn</td>"] {
        assert!(page.contains(text), "{text}");
    }
    for outside in ["http://", "https://", "<script", "<link", "src="] {
        let outside_of_names = page.replace("http://www.w3.org/", "");
        assert!(!outside_of_names.contains(outside), "{outside}");
    }
}

/// Every tag is closed, in order.
fn well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, text) = tag.split_once('>').unwrap_or_else(|| panic!("unended: {tag}"));
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

fn comparison() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.json");
    let old = path.to_str().expect("a path");
    let mut earlier = report(&bench(&["--json", "shell"]));
    // What was a hundred times quicker then, and one that is as it was, whatever the noise.
    let rows = earlier["experiments"][0]["rows"].as_array_mut().expect("rows");
    for (number, row) in rows.iter_mut().enumerate() {
        let wall = &mut row["wall_ns"];
        let median = wall["median"].as_f64().expect("a median");
        let (low, median, high) = if number == 0 {
            (median / 1e6, median, median * 1e6)
        } else {
            (median / 100.0, median / 100.0, median / 100.0)
        };
        *wall = json!({"median": median, "low": low, "high": high, "rounds": 9});
    }
    let count = rows.len();
    std::fs::write(&path, earlier.to_string()).expect("written");
    let now = report(&bench(&["--json", "shell", "--compare", old]));
    let changes = now["comparison"].as_array().expect("a comparison");
    assert_eq!(changes.len(), count);
    assert_eq!(changes[0]["beyond_noise"], false, "{}", changes[0]);
    assert!(
        changes[1..].iter().all(|change| change["beyond_noise"] == true),
        "{changes:?}"
    );
    let said = bench(&["shell", "--compare", old]).output();
    assert!(
        said.contains("Against the older report") && said.contains("1 case is within the noise"),
        "{said}"
    );
    let other = bench(&["shims", "--compare", old]).output();
    assert!(other.contains("no case in common"), "{other}");
}

fn not_a_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("old.json");
    let compare = |content: &str| {
        std::fs::write(&path, content).expect("written");
        let mut command = command(&["shell", "--compare"]);
        run(command.arg(&path)).expect_code(125).errors()
    };
    for content in ["", "[]", "{\"schema_version\": 1}", "no JSON"] {
        assert!(compare(content).contains("is no report of `bench --json`"), "{content}");
    }
    assert!(compare("{\"schema_version\": 9}").contains("is a report of version 9, not 1"));
}
