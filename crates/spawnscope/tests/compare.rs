//! `diff` and `check` on recordings of a script before and after it was fixed: the slow one runs
//! `dirname` and `mv` for each of ten files, the fixed one `mv` for each of two directories. The
//! recordings are tests/recordings/relocate_*.sql.

use std::fs;

use serde_json::Value;

use crate::directory::Directory;
use crate::run::run;
use crate::stored::{AFTER, BEFORE, create_recording};
use crate::texts::{assert_contains, unwrapped};

/// Returns a directory with both recordings.
fn recordings() -> Directory {
    Directory::with(&[("before.db", BEFORE), ("after.db", AFTER)])
}

impl Directory {
    /// Adds a recording with these rows, which the SQL in `more` then changes.
    fn add_recording(&self, name: &str, rows: &str, more: &str) {
        create_recording(&self.path(name), &format!("{rows}{more}"));
    }

    /// Adds a recording for each of these walls, in milliseconds. Returns the names of the files.
    fn add_runs(&self, name: &str, rows: &str, walls: &[u64]) -> Vec<String> {
        let named = walls.iter().zip(0..).map(|(wall, number)| (format!("{name}.{number}.db"), wall));
        let added = named.map(|(file, wall)| {
            self.add_recording(&file, rows, &format!("UPDATE recording SET wall_ns = {wall}000000;"));
            file
        });
        added.collect()
    }

    /// Runs the program, which prints no message, and returns its status and standard output.
    fn status(&self, arguments: &[&str]) -> (i32, String) {
        let finished = self.run(arguments);
        assert_eq!(finished.errors(), "", "{arguments:?}");
        (finished.code(), finished.output())
    }

    /// Checks the message of a failure.
    #[track_caller]
    fn fails(&self, arguments: &[&str], why: &str) {
        assert_contains(&self.failure(arguments), [why]);
    }

    /// Compares several runs and returns the printed text.
    fn diff_runs(&self, one: &[String], other: &[String]) -> String {
        let files = [&["diff".to_owned()], one, &["--".to_owned()], other].concat();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        unwrapped(&self.text(&files))
    }
}

#[test]
fn a_diff_names_what_a_fix_changed_with_exact_counts() {
    let directory = recordings();
    let (status, text) = directory.status(&["diff", "before.db", "after.db"]);
    assert_eq!(status, 0);
    let first = "wall time 128 ms -> 26.5 ms (one run each, no interval): dirname 10 -> 0 launches at \
                 relocate.sh:5, mv 10 -> 2 launches at relocate.sh:10 (was 6)";
    assert!(unwrapped(&text).starts_with(first), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, markdown) = directory.status(&["diff", "--markdown", "before.db", "after.db"]);
    assert_contains(&markdown, ["| `dirname` | `relocate.sh:5` | 10 -> 0 |"]);
}

#[test]
fn the_json_of_a_diff_has_every_group() {
    let found = recordings().json(&["diff", "--json", "before.db", "after.db"]);
    assert_eq!(found["schema_version"], 1);
    assert_eq!(found["launches"]["difference"], -18);
    assert_eq!(found["wall_ns"]["low"], Value::Null, "one run has no interval");
    let groups = found["groups"].as_array().unwrap();
    let dirname = groups.iter().find(|group| group["command"] == "dirname").unwrap();
    assert_eq!(dirname["kind"], "removed");
    assert_eq!(dirname["line_before"]["line"], 5);
    assert_eq!(dirname["line_after"], Value::Null);
    assert_eq!(dirname["launches"]["before"]["median"], 10);
    assert_eq!(dirname["arguments"], "usr/section#/file#");
}

#[test]
fn several_runs_distinguish_change_from_noise() {
    let directory = recordings();
    let slow = directory.add_runs("slow", BEFORE, &[128, 131, 126, 130]);
    let fast = directory.add_runs("fast", AFTER, &[26, 27, 25, 28]);
    let repeated = directory.add_runs("repeated", BEFORE, &[127, 132, 129, 125]);
    let fixed = directory.diff_runs(&slow, &fast);
    assert!(fixed.starts_with("wall time -102 ms \u{b1} "), "{fixed}");
    assert_contains(&fixed, [": dirname 10 -> 0 launches at relocate.sh:5, mv 10 -> 2"]);
    let same = directory.diff_runs(&slow, &repeated);
    assert!(same.starts_with("wall time unchanged ("), "{same}");
    assert_contains(&same, ["is noise): no launch was added, removed or changed"]);
}

#[test]
fn sides_must_be_separated() {
    let directory = recordings();
    directory.fails(&["diff", "before.db"], "one recording cannot be compared");
    directory.fails(&["diff", "before.db", "after.db", "after.db"], "Put -- before them");
    directory.fails(&["diff", "before.db", "none.db"], "none.db");
}

#[test]
fn the_page_of_a_diff_has_the_sentence_the_tables_and_the_flame_graph() {
    let directory = recordings();
    let (_, printed) = directory.status(&["diff", "-o", "diff.html", "before.db", "after.db"]);
    assert!(printed.starts_with("wall "), "the text is printed as well");
    let page = fs::read_to_string(directory.path("diff.html")).unwrap();
    let parts = [
        "default-src &#39;none&#39;; script-src &#39;sha256-",
        "dirname 10 -&#62; 0 launches at relocate.sh:5",
        "<th scope=\"row\">launches</th>",
        "<h2 id=\"h-Removed\">Removed</h2>",
        "<h2 id=\"h-Changed\">Changed</h2>",
        "<h2 id=\"h-flame\">",
        "<title>dirname: 10 -&#62; 0 (-10)</title><rect class=\"less-4\"",
    ];
    let mut rest = page.as_str();
    for part in parts {
        let found = rest.split_once(part);
        (_, rest) = found.unwrap_or_else(|| panic!("{part} is missing or in the wrong order"));
    }
}

#[test]
fn hostile_names_are_shown_as_text_in_the_page() {
    const ATTACK: &str = "<img src=x onerror=alert(1)>\"'<script>alert(2)";
    let directory = recordings();
    let replaced = format!(
        "UPDATE text SET bytes = CAST(replace(CAST(bytes AS TEXT), 'dirname', '{}') AS BLOB);",
        ATTACK.replace('\'', "''")
    );
    directory.add_recording("hostile.db", BEFORE, &replaced);
    directory.status(&["diff", "-o", "diff.html", "hostile.db", "after.db"]);
    let page = fs::read_to_string(directory.path("diff.html")).unwrap();
    assert!(page.contains("img src=x"), "the name is shown");
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("<script").count(), 1, "only the script of the page itself");
    assert_eq!(page.matches("<style>").count(), 2);
}

#[test]
fn a_budget_that_dirname_exceeds_fails_with_its_line() {
    let directory = recordings();
    let (status, text) = directory.status(&["check", "--per-command", "dirname=3", "before.db"]);
    assert_eq!(status, 1);
    let text = unwrapped(&text);
    let expected = "exceeded launches of dirname 10, budget 3 dirname: 10 launches at relocate.sh:5";
    assert_contains(&text, [expected]);
    assert_contains(&text, ["bash launches dirname 10 times although `${p%/*}` would do"]);
    let (status, text) = directory.status(&["check", "--per-command", "dirname=3", "after.db"]);
    assert_eq!(status, 0, "the fixed script: {text}");
    assert!(text.contains("The budget is met: bash relocate.sh"), "{text}");
}

#[test]
fn every_budget_is_kept_at_its_limit_and_exceeded_above() {
    let directory = recordings();
    directory.add_recording(
        "forks.db",
        BEFORE,
        "DELETE FROM exec WHERE launch IN (SELECT id FROM launch WHERE id > 1 LIMIT 4);
         INSERT INTO failed_exec SELECT 1, 1000, 2000, 2, 2 UNION ALL SELECT 1, 3000, 4000, 2, 2;",
    );
    for (option, met, exceeded) in [
        ("--max-launches", "21", "20"),
        ("--max-forks-without-exec", "4", "3"),
        ("--max-failed-execs", "2", "1"),
        ("--per-line", "10", "9"),
        ("--max-critical-tax", "50%", "20%"),
        ("--max-wall", "130ms", "100ms"),
    ] {
        // The changed recording contradicts itself, so there is a message, which `status` would not
        // accept.
        let statuses = [met, exceeded].map(|limit| directory.run(&["check", option, limit, "forks.db"]).code());
        assert_eq!(statuses, [0, 1], "{option}");
    }
}

#[test]
fn a_fix_is_printed_once_for_several_budgets() {
    let (_, text) = recordings().status(&["check", "--max-launches", "20", "--per-line", "9", "before.db"]);
    let counts = ["do the work in the shell", "-> as above"].map(|part| text.matches(part).count());
    assert_eq!(counts, [1, 2], "{text}");
}

#[test]
fn noise_does_not_exceed_a_budget_for_time() {
    let directory = recordings();
    let files = directory.add_runs("run", BEFORE, &[128, 140, 126, 131, 133]);
    // The mean is 131.6 ms, and its interval begins at 125 ms.
    for (limit, status) in [("130ms", 0), ("120ms", 1)] {
        let mut arguments = vec!["check", "--max-wall", limit];
        arguments.extend(files.iter().map(String::as_str));
        assert_eq!(directory.status(&arguments).0, status, "{limit}");
    }
}

#[test]
fn a_baseline_limits_growth() {
    let directory = recordings();
    let (status, text) = directory.status(&["check", "--against", "after.db", "before.db"]);
    assert_eq!(status, 1);
    let text = unwrapped(&text);
    let expected = "exceeded launches against baseline 21, budget 3 dirname: 10 more launches at relocate.sh:5";
    assert_contains(&text, [expected, "met forks without exec against baseline 0, budget 0"]);
    for (options, status) in [
        (&["--against", "before.db", "after.db"][..], 0),
        (&["--against", "after.db", "--tolerance", "18", "before.db"], 0),
        (&["--against", "after.db", "--tolerance", "17", "before.db"], 1),
        (&["--against", "after.db", "--tolerance", "600%", "before.db"], 0),
    ] {
        assert_eq!(directory.status(&[&["check"], options].concat()).0, status, "{options:?}");
    }
}

#[test]
fn budgets_are_read_from_a_file() {
    let directory = recordings();
    directory.fails(&["check", "before.db"], "no budget: give one");
    let budgets = "[check]\nmax-launches = 20\n[check.per-command]\n\"dir*\" = 10\n";
    fs::write(directory.path("spawnscope.toml"), budgets).unwrap();
    let (status, text) = directory.status(&["check", "before.db"]);
    assert_eq!(status, 1);
    assert!(text.starts_with("bash relocate.sh exceeds 1 of 2 budgets"), "{text}");
    fs::write(directory.path("other.toml"), "[check]\nmax-launches = 21\n").unwrap();
    assert_eq!(directory.status(&["check", "--config", "other.toml", "before.db"]).0, 0);
    fs::write(directory.path("spawnscope.toml"), "[check]\nmax-lunches = 20\n").unwrap();
    let message = directory.failure(&["check", "before.db"]);
    assert_contains(&message, ["spawnscope.toml", "max-lunches"]);
}

#[test]
fn a_budget_that_cannot_be_checked_is_a_failure() {
    let directory = recordings();
    let without_lines = "UPDATE launch SET script_stack = NULL, native_stack = NULL;";
    directory.add_recording("no_lines.db", BEFORE, without_lines);
    directory.add_recording("cut_off.db", BEFORE, "UPDATE recording SET wall_ns = NULL;");
    directory.fails(&["check", "--per-line", "5", "no_lines.db"], "needs script lines");
    directory.fails(&["check", "--max-wall", "5s", "cut_off.db"], "the wall time is unknown");
    directory.fails(&["check", "--max-wall", "5", "before.db"], "`5` is not a time");
    directory.fails(&["check", "--per-command", "git", "before.db"], "give PROGRAM=N");
}

/// Returns SQL that gives the script of a recording another name.
fn renaming_script(name: &str) -> String {
    let quoted = name.replace('\'', "''");
    format!("UPDATE text SET bytes = CAST('{quoted}' AS BLOB) WHERE bytes = CAST('relocate.sh' AS BLOB);")
}

#[test]
fn annotations_are_on_script_lines() {
    let directory = recordings();
    let renaming = renaming_script("/srv/ci/code/tools/relocate.sh");
    directory.add_recording("absolute.db", BEFORE, &renaming);
    let summary = directory.path("summary.md");
    fs::write(&summary, "earlier\n").unwrap();
    let mut command = directory.command(&["check", "--format", "github", "--per-line", "5", "absolute.db"]);
    command.env("GITHUB_WORKSPACE", "/srv/ci/code").env("GITHUB_STEP_SUMMARY", &summary);
    let text = run(&mut command).expect_code(1).output();
    let commands: Vec<&str> = text.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(commands.len(), 2, "{text}");
    let first = "::error file=tools/relocate.sh,line=5,title=launches from one line%3A 10%2C budget 5::dirname: 10 launches at relocate.sh:5";
    assert!(commands[0].starts_with(first), "{text}");
    assert!(commands[0].contains("%0Abash launches dirname 10 times"), "{text}");
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.starts_with("earlier\n**bash "), "{written}");
    assert!(written.contains("relocate.sh exceeds the budget"), "{written}");
    assert_contains(&written, ["- `dirname: 10 launches at relocate.sh:5`"]);
}

#[test]
fn hostile_names_inject_no_command() {
    let directory = recordings();
    let hostile = "x\n::error::pwned\r::set-output name=a::b,line=9:%0A##[group]`|<img src=x>.sh";
    let hex: String = hostile.bytes().map(|byte| format!("{byte:02x}")).collect();
    directory.add_recording(
        "hostile.db",
        BEFORE,
        &format!(
            "UPDATE text SET bytes = x'{hex}' WHERE bytes = CAST('relocate.sh' AS BLOB);
             UPDATE text SET bytes = CAST('/bin/::warning::mv' AS BLOB) WHERE bytes = CAST('/usr/bin/mv' AS BLOB);"
        ),
    );
    for format in "github text markdown json".split(' ') {
        let (status, text) = directory.status(&["check", "--format", format, "--per-line", "5", "hostile.db"]);
        assert_eq!(status, 1, "{format}");
        assert!(!text.contains('\r'), "{text}");
        let is_log = ["github", "text"].contains(&format);
        assert!(!is_log || !text.contains("##["), "{text}");
        let commands = text.lines().filter(|line| line.trim_start().starts_with("::"));
        let commands: Vec<&str> = commands.collect();
        if format == "github" {
            assert_eq!(commands.len(), 2, "{text}");
            assert!(commands.iter().all(|command| command.starts_with("::error file=")), "{text}");
            let properties = commands[0].strip_prefix("::error ").unwrap();
            let properties = properties.split("::").next().unwrap();
            // The name's own `line=` follows an escape.
            assert_eq!(properties.matches("line=").count(), 2, "{properties}");
            assert!(properties.contains("%2Cline=9%3A"), "{properties}");
        }
        if format == "text" {
            assert_eq!(commands, Vec::<&str>::new());
        }
        if format == "markdown" {
            assert!(!text.lines().any(|line| line.contains("<img") && !line.contains("- ``")), "{text}");
        }
        if format == "json" {
            serde_json::from_str::<Value>(&text).unwrap();
        }
    }
}

#[test]
fn at_most_ten_annotations_are_printed() {
    let directory = recordings();
    let call_sites: String = (0..30)
        .map(|number| {
            let (frame, stack) = (1_000 + number, 1_000 + number);
            format!(
                "INSERT INTO frame SELECT {frame}, 2, NULL, (SELECT file_text FROM frame WHERE line = 5), {frame}, NULL, NULL, 0;
                 INSERT INTO stack VALUES ({stack}, {frame}, NULL, 0);
                 UPDATE launch SET script_stack = {stack} WHERE id = (SELECT id FROM launch ORDER BY id LIMIT 1 OFFSET {});",
                number % 20 + 1
            )
        })
        .collect();
    directory.add_recording("lines.db", BEFORE, &call_sites);
    let (status, text) = directory.status(&["check", "--format", "github", "--per-line", "0", "lines.db"]);
    assert_eq!(status, 1);
    let errors = text.lines().filter(|line| line.starts_with("::error"));
    assert_eq!(errors.count(), 10, "{text}");
}
