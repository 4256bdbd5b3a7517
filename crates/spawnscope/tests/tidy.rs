//! Checks the rules of the source tree that Cargo does not: what `present` imports, who prints, file lengths, file headers, plain words, no
//! paths of a particular machine, and that the tests that docs/design/trust.md names exist. A rule is a function from a file to its violations; each
//! is tried on a wrong line first, then on every tracked file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory that formats findings. Crates keep all other stages apart; this one shares a crate with the command line.
const PRESENT: &str = "crates/spawnscope/src/present";
/// What it may use.
const PRESENT_MAY_IMPORT: [&str; 6] = ["event", "units", "analyze", "doctor", "lab", "present"];
const CLI: &str = "crates/spawnscope/src/cli";
/// Files in `cli` that write to standard error: messages, the report after a recording, and progress lines. The last two contain only our
/// own text.
const MAY_WRITE: [&str; 4] = ["output.rs", "record.rs", "progress.rs", "bench/progress.rs"];
const MAX_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Returns every file that git tracks, with its text. Binary files are skipped.
fn tracked() -> Vec<(PathBuf, String)> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files");
    let names = String::from_utf8(listed.stdout).unwrap();
    let names = names.split_terminator('\0').map(PathBuf::from);
    let files: Vec<_> = names
        .filter_map(|name| Some((name.clone(), fs::read_to_string(root().join(name)).ok()?)))
        .collect();
    assert!(files.len() > 50, "git lists the files");
    files
}

/// Checks that a rule finds this text wrong.
#[track_caller]
fn fires(rule: impl Fn(&Path, &str) -> Vec<String>, path: &str, text: &str) {
    assert_eq!(rule(Path::new(path), text).len(), 1, "{path}: {text}");
}

/// Checks that a rule finds nothing wrong in the tree.
#[track_caller]
fn holds(rule: impl Fn(&Path, &str) -> Vec<String>) {
    let files = tracked();
    let wrong = files.iter().flat_map(|(path, text)| {
        let found = rule(path, text).into_iter();
        found.map(move |wrong| format!("{}: {wrong}", path.display()))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<String>::new());
}

fn suffix(path: &Path) -> &str {
    path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Returns the module that each path in a line starts with: `record` of `crate::record::reader::X`. Groups and crates of stages, which
/// would hide it, are returned as they are.
fn modules(line: &str) -> impl Iterator<Item = &str> {
    let end = |text: &str, is_part: fn(char) -> bool| text.find(|c| !is_part(c)).unwrap_or(text.len());
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let own = line.split("crate::").skip(1).map(move |rest| {
        let end = end(rest, is_name);
        if end == 0 {
            "a group after crate::"
        } else {
            &rest[..end]
        }
    });
    let stages = line
        .match_indices("spawnscope_")
        .map(move |(at, _)| &line[at..at + end(&line[at..], is_name)]);
    let outer = line.matches("super::super::super");
    own.chain(stages).chain(outer)
}

fn other_stages_in_present(path: &Path, text: &str) -> Vec<String> {
    if !path.starts_with(PRESENT) {
        return Vec::new();
    }
    let lines = text.lines().filter(|line| !is_comment(line));
    let wrong = lines
        .flat_map(modules)
        .filter(|name| !PRESENT_MAY_IMPORT.contains(name));
    wrong.map(str::to_owned).collect()
}

#[test]
fn presentation_uses_findings_only() {
    for wrong in [
        "use crate::record::reader::Recording;",
        "    let file = crate::collect::ebpf::load();",
        "use crate::{event::Nanos, record::reader::Recording};",
        "use spawnscope_recording::RecordingFile;",
        "use super::super::super::cli;",
    ] {
        fires(other_stages_in_present, &format!("{PRESENT}/tree.rs"), wrong);
    }
    holds(other_stages_in_present);
}

/// Whether a file is source of the profiler, in any of its crates, and not a file of unit tests.
fn is_profiler_source(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    let [crates, name, src, rest @ ..] = parts.as_slice() else {
        return false;
    };
    let is_test = rest.iter().any(|part| ["tests", "tests.rs"].contains(part));
    *crates == "crates" && name.starts_with("spawnscope") && *src == "src" && !is_test
}

fn writes(line: &str) -> bool {
    // Width and kind of the terminal, and clap's question, write nothing.
    let harmless = [
        "width(&io::stderr())",
        "width(&std::io::stderr())",
        "use_stderr()",
        "duplicate_if_terminal(stderr())",
    ];
    let line = harmless
        .iter()
        .fold(line.to_owned(), |line, asks| line.replace(asks, ""));
    let ways = ["print!(", "println!(", "dbg!(", "stderr()"];
    !is_comment(&line) && ways.iter().any(|way| line.contains(way))
}

fn messages_elsewhere(path: &Path, text: &str) -> Vec<String> {
    let within_cli = path.strip_prefix(CLI);
    let may_write = within_cli.is_ok_and(|path| MAY_WRITE.iter().any(|name| path == Path::new(name)));
    if !is_profiler_source(path) || may_write {
        return Vec::new();
    }
    // A module of unit tests is at the end of its file.
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| writes(line)).map(str::to_owned).collect()
}

#[test]
fn one_place_prints_messages() {
    for wrong in [
        "eprintln!(\"wrong\");",
        "println!(\"wrong\");",
        "dbg!(value);",
        "let _ = writeln!(io::stderr(), \"{}\", width(&io::stderr()));",
        "#[cfg(test)]\nmod tests;\nfn f() {\n    eprint!(\"wrong\");\n}",
    ] {
        fires(messages_elsewhere, "crates/spawnscope-doctor/src/checks.rs", wrong);
        fires(messages_elsewhere, "crates/spawnscope/src/cli/report.rs", wrong);
    }
    holds(messages_elsewhere);
    for name in MAY_WRITE {
        let text = fs::read_to_string(root().join(CLI).join(name)).unwrap();
        assert!(text.lines().any(writes), "{name} needs no exception");
    }
}

fn too_long(path: &Path, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let is_too_long = ["rs", "c", "h", "py", "sh"].contains(&suffix(path)) && lines > MAX_LINES;
    // A generated header is as long as its sources make it; those have their own limit.
    let is_generated = suffix(path) == "h" && text.lines().take(5).any(|line| line.contains("Generated by cbindgen"));
    let is_wrong = is_too_long && !is_generated;
    is_wrong.then(|| format!("{lines} lines")).into_iter().collect()
}

#[test]
fn files_are_of_a_size_to_be_read() {
    for path in ["src/a.rs", "tests/a.c", "a.bpf.h", "a.py", "scripts/a.sh"] {
        fires(too_long, path, &"\n".repeat(MAX_LINES + 1));
    }
    holds(too_long);
}

fn without_header(path: &Path, text: &str) -> Vec<String> {
    let heads: &[&str] = match suffix(path) {
        "rs" => &["//!"],
        "c" | "h" => &["//", "/*"],
        "py" => &["\"\"\"", "#"],
        "sh" => &["#"],
        "sql" => &["--"],
        _ => return Vec::new(),
    };
    let first = text.lines().find(|line| !line.starts_with("#!/")).unwrap_or_default();
    let has_header = heads.iter().any(|head| first.starts_with(head));
    (!has_header)
        .then(|| format!("opens with `{first}`"))
        .into_iter()
        .collect()
}

#[test]
fn every_file_opens_with_what_it_is() {
    for (path, text) in [
        ("a.rs", "use std::fs;\n//! Late."),
        ("a.rs", "// Not of the module."),
        ("a.c", "#include <stdio.h>"),
        ("a.py", "#!/usr/bin/env python3\nimport os"),
        ("a.sh", "#!/usr/bin/env bash\nset -e"),
        ("a.sql", "CREATE TABLE a (b);"),
        ("a.rs", ""),
    ] {
        fires(without_header, path, text);
    }
    holds(without_header);
}

/// Words that make a sentence hard to read: the field has plainer ones (report, record, distinguish, no process, as many, therefore).
const HARD_WORDS: [&str; 7] = ["told", "dear", "so many", "nobody", "whence", "likewise", "whose doing"];

/// Returns the prose of a file: documents without their code blocks, and comments, which the help of the command line is made of.
fn prose<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    let marks: &[&str] = match suffix(path) {
        "md" => return documents_prose(text),
        "rs" | "c" | "h" | "ts" | "mjs" => &["//", "/*"],
        "sh" | "py" | "toml" => &["# "],
        "sql" => &["-- "],
        _ => return Vec::new(),
    };
    let comment = |line: &'a str| marks.iter().find_map(|mark| line.find(mark).map(|at| &line[at..]));
    text.lines().filter_map(comment).collect()
}

fn documents_prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let is_prose = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ")
    };
    text.lines().filter(is_prose).collect()
}

/// Whether a line has a word. A name of several words, such as `is_known`, is a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let line = line.to_lowercase();
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

fn hard_words(path: &Path, text: &str) -> Vec<String> {
    let prose = prose(path, text).into_iter();
    let words = |line| HARD_WORDS.into_iter().filter(move |word| has_word(line, word));
    prose
        .flat_map(|line| words(line).map(move |word| format!("`{word}` in `{}`", line.trim())))
        .collect()
}

#[test]
fn prose_has_plain_words() {
    for word in HARD_WORDS {
        for (path, before) in [
            ("a.rs", "/// What is"),
            ("a.rs", "let a = 1; //"),
            ("a.sh", "#"),
            ("a.sql", "a INTEGER, --"),
            ("a.md", "    code, told\n\n```\nnobody\n```\nIt is"),
        ] {
            fires(hard_words, path, &format!("{before} {word}, then."));
        }
    }
    let plain = ["let told = 1;", "un_told, untold"].join("\n// ");
    assert_eq!(hard_words(Path::new("a.rs"), &plain), Vec::<String>::new());
    holds(hard_words);
}

/// The directories that this checkout and its user have. Raw results may name the machine, but not these.
fn own_directories() -> Vec<String> {
    let directories = [
        root().parent().map(Path::to_path_buf),
        std::env::var_os("HOME").map(PathBuf::from),
    ];
    let directories = directories.into_iter().flatten();
    let directories = directories.filter(|directory| directory.components().count() > 1);
    directories
        .map(|directory| format!("{}/", directory.display()))
        .collect()
}

/// Users in examples and tests.
const NO_ONES: [&str; 3] = ["me", "token", "user"];

fn paths_of_a_machine(own_directories: &[String], text: &str) -> Vec<String> {
    let own = own_directories
        .iter()
        .filter(|directory| text.contains(directory.as_str()));
    let homes = text.split("/home/").skip(1).filter_map(|rest| {
        let user = rest.split(|c: char| !c.is_alphanumeric()).next()?;
        (!user.is_empty() && !NO_ONES.contains(&user)).then(|| format!("/home/{user}"))
    });
    own.cloned().chain(homes).collect()
}

#[test]
fn no_path_of_a_machine_is_kept() {
    let own = ["/srv/checkouts/".to_owned()];
    for wrong in ["/srv/checkouts/spawnscope/a.rs", concat!("see /home", "/alice/notes")] {
        fires(|_, text| paths_of_a_machine(&own, text), "a.md", wrong);
    }
    let own = own_directories();
    holds(|_, text| paths_of_a_machine(&own, text));
}

/// Whether one of these files has a test of a name that starts so: a function below an attribute, or a name that vspawn's tests give.
fn has_test<'a>(name: &str, mut files: impl Iterator<Item = &'a str>) -> bool {
    let (function, string) = (format!("fn {name}"), format!("test(\"{name}"));
    files.any(|text| {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        let below = |at: usize| {
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with(['#', '/']));
            above.into_iter().any(|line| line.contains("test"))
        };
        let is_function = |(at, line): (usize, &&str)| line.starts_with(&function) && below(at);
        text.contains(&string) || lines.iter().enumerate().any(is_function)
    })
}

/// The rows of the table of attacks: a point, an attack, and its tests.
fn attacks(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let rows = text.lines().map(|line| line.split('|').collect::<Vec<_>>());
    rows.filter_map(|cells| {
        let point = cells.get(1)?.trim().parse().ok()?;
        assert_eq!(cells.len(), 5, "a row of three cells: {cells:?}");
        Some((point, cells[3]))
    })
}

/// The tests that the table of attacks names. Words that are not names of tests have fewer underscores.
fn names_of_tests(text: &str) -> Vec<&str> {
    let words = attacks(text).flat_map(|(_, tests)| tests.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| word.matches('_').count() >= 2).collect()
}

#[test]
fn each_test_that_the_list_of_attacks_names_exists() {
    let table = "| 1 | an attack | `--test a a_link_leads_nowhere`, `links_*` |";
    assert_eq!(names_of_tests(table), ["a_link_leads_nowhere"]);
    let source = "#[test]\nfn a_link_leads_nowhere_at_all() {}\n\nfn a_helper_of_tests() {}\n";
    assert!(has_test("a_link_leads_nowhere", [source].into_iter()));
    for wrong in ["a_link_leads_somewhere", "a_helper_of_tests"] {
        assert!(!has_test(wrong, [source].into_iter()), "{wrong}");
    }

    let list = fs::read_to_string(root().join("docs/design/trust.md")).unwrap();
    let points: Vec<u32> = attacks(&list).map(|(point, _)| point).collect();
    assert!((1..=15).all(|point| points.contains(&point)), "{points:?}");
    let names = names_of_tests(&list);
    assert!(names.len() > 40, "names are found");
    let files = tracked();
    let code = || {
        files
            .iter()
            .filter(|(path, _)| suffix(path) == "rs")
            .map(|(_, text)| text.as_str())
    };
    let missing: Vec<_> = names.iter().filter(|name| !has_test(name, code())).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

/// The packages of a registry hold neither the workspace's directory nor its licence files: each crate has its own, and includes them.
#[test]
fn each_package_contains_the_licences() {
    let crates = fs::read_dir(root().join("crates")).unwrap();
    let crates: Vec<PathBuf> = crates.map(|entry| entry.unwrap().path()).collect();
    assert!(crates.len() > 10, "{crates:?}");
    for directory in crates {
        let name = directory.file_name().unwrap().to_str().unwrap();
        let listed = Command::new(env!("CARGO"))
            .args(["package", "--list", "--offline", "--allow-dirty", "--package", name])
            .current_dir(root())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&listed.stderr);
        assert!(listed.status.success(), "cargo package --list of {name}: {message}");
        let listed = String::from_utf8(listed.stdout).unwrap();
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            assert!(
                listed.lines().any(|file| file == licence),
                "{name} is without {licence}"
            );
            let text = |directory: &Path| fs::read_to_string(directory.join(licence)).unwrap();
            assert_eq!(text(&directory), text(&root()), "{licence} of {name}");
        }
    }
}
