//! Checks rules of the source tree that Cargo does not check: what `present` imports, which files
//! print, lengths of files and lines, file headers, plain words, no paths of a particular machine,
//! and that the tests exist which attacks.md and the kernel matrix name. A rule is a function that
//! returns the violations in a file. Each rule is tried on wrong text first, then on every tracked
//! file.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory that formats findings. All other stages are crates of their own; this one shares a
/// crate with the command line.
const PRESENT: &str = "crates/spawnscope/src/present";
/// The modules that `present` may use.
const PRESENT_MAY_IMPORT: [&str; 7] = ["event", "units", "analyze", "doctor", "lab", "present", "spawnscope_data"];
const CLI: &str = "crates/spawnscope/src/cli";
/// Files in `cli` that write to standard error: messages, and the report after a recording, which
/// contains only our own text.
const MAY_WRITE: [&str; 3] = ["output.rs", "record.rs", "usage_error.rs"];
const MAX_LINES: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns every file that git tracks, with its text. Binary files are skipped.
fn tracked() -> Vec<(PathBuf, String)> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "git ls-files");
    let names = String::from_utf8(listed.stdout).unwrap();
    let names = names.split_terminator('\0').map(PathBuf::from);
    let files: Vec<_> =
        names.filter_map(|name| Some((name.clone(), fs::read_to_string(root().join(name)).ok()?))).collect();
    assert!(files.len() > 50, "git lists the files");
    files
}

/// Checks that a rule finds one violation in this text.
#[track_caller]
fn assert_violates(rule: impl Fn(&Path, &str) -> Vec<String>, path: &str, text: &str) {
    assert_eq!(rule(Path::new(path), text).len(), 1, "{path}: {text}");
}

/// Checks that a rule finds no violation in the tree.
#[track_caller]
fn assert_tree_complies(rule: impl Fn(&Path, &str) -> Vec<String>) {
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

/// Returns the module that each path in a line starts with, such as `record` for
/// `crate::record::reader::X`. Groups and the crates of stages, which would hide the module, are
/// returned as they are.
fn modules(line: &str) -> impl Iterator<Item = &str> {
    let own = line.split("crate::").skip(1).map(|rest| {
        let name = leading_name(rest);
        if name.is_empty() { "a group after crate::" } else { name }
    });
    let stages = line.match_indices("spawnscope_").map(move |(at, _)| leading_name(&line[at..]));
    let outer = line.matches("super::super::super");
    own.chain(stages).chain(outer)
}

fn leading_name(text: &str) -> &str {
    &text[..text.find(|c| !is_part_of_name(c)).unwrap_or(text.len())]
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn other_stages_in_present(path: &Path, text: &str) -> Vec<String> {
    if !path.starts_with(PRESENT) {
        return Vec::new();
    }
    let lines = text.lines().filter(|line| !is_comment(line));
    let wrong = lines.flat_map(modules).filter(|name| !PRESENT_MAY_IMPORT.contains(name));
    wrong.map(str::to_owned).collect()
}

#[test]
fn present_imports_only_its_listed_modules() {
    for wrong in [
        "use crate::record::reader::Recording;",
        "    let file = crate::collect::ebpf::load();",
        "use crate::{event::Nanos, record::reader::Recording};",
        "use spawnscope_recording::RecordingFile;",
        "use super::super::super::cli;",
    ] {
        assert_violates(other_stages_in_present, &format!("{PRESENT}/tree.rs"), wrong);
    }
    assert_tree_complies(other_stages_in_present);
}

/// Whether a file is source of the profiler, in any of its crates, and not a file of unit tests.
fn is_profiler_source(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str().unwrap_or_default()).collect();
    let [crates, name, src, rest @ ..] = parts.as_slice() else { return false };
    let is_test = rest.iter().any(|part| ["tests", "tests.rs"].contains(part));
    *crates == "crates" && name.starts_with("spawnscope") && *src == "src" && !is_test
}

fn writes_to_terminal(line: &str) -> bool {
    // Queries for the size and the type of the terminal write nothing.
    let harmless = [
        "width(&io::stderr())",
        "height(&io::stderr())",
        "width(&std::io::stderr())",
        "use_stderr()",
        "replace_if_terminal(stderr(), || dup2_stderr(&dev_null))",
    ];
    let line = harmless.iter().fold(line.to_owned(), |line, query| line.replace(query, ""));
    let macros_and_streams = ["print!(", "println!(", "dbg!(", "stderr()"];
    !is_comment(&line) && macros_and_streams.iter().any(|text| line.contains(text))
}

fn messages_elsewhere(path: &Path, text: &str) -> Vec<String> {
    let within_cli = path.strip_prefix(CLI);
    let may_write = within_cli.is_ok_and(|path| MAY_WRITE.iter().any(|name| path == Path::new(name)));
    if !is_profiler_source(path) || may_write {
        return Vec::new();
    }
    // A module of unit tests is at the end of its file.
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| writes_to_terminal(line)).map(str::to_owned).collect()
}

#[test]
fn only_listed_files_print_messages() {
    for wrong in [
        "eprintln!(\"wrong\");",
        "println!(\"wrong\");",
        "dbg!(value);",
        "let _ = writeln!(io::stderr(), \"{}\", width(&io::stderr()));",
        "#[cfg(test)]\nmod tests;\nfn f() {\n    eprint!(\"wrong\");\n}",
    ] {
        assert_violates(messages_elsewhere, "crates/spawnscope-doctor/src/checks.rs", wrong);
        assert_violates(messages_elsewhere, "crates/spawnscope/src/cli/report.rs", wrong);
    }
    assert_tree_complies(messages_elsewhere);
    for name in MAY_WRITE {
        let text = fs::read_to_string(root().join(CLI).join(name)).unwrap();
        assert!(text.lines().any(writes_to_terminal), "{name} needs no exception");
    }
}

fn too_long(path: &Path, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let is_too_long = ["rs", "c", "h", "py", "sh"].contains(&suffix(path)) && lines > MAX_LINES;
    // The length of a generated header follows from its sources, which have their own limit.
    let is_generated = suffix(path) == "h" && text.lines().take(5).any(|line| line.contains("Generated by cbindgen"));
    let is_wrong = is_too_long && !is_generated;
    is_wrong.then(|| format!("{lines} lines")).into_iter().collect()
}

#[test]
fn no_file_is_too_long() {
    for path in ["src/a.rs", "tests/a.c", "a.bpf.h", "a.py", "scripts/a.sh"] {
        assert_violates(too_long, path, &"\n".repeat(MAX_LINES + 1));
    }
    assert_tree_complies(too_long);
}

const MAX_FUNCTION_LINES: usize = 40;
/// Functions outside of tests that may have more lines, with the reason. A function is removed when
/// it has become shorter; none is added.
const LONG_FUNCTIONS: [(&str, &str, &str); 2] = [
    ("crates/spawnscope-analyze/src/explain/advice/edit/fuzzing.rs", "edit_for_fuzzing", "one list of edits"),
    ("crates/spawnscope/src/present/dataset/columns.rs", "launches", "one table of columns"),
];

/// Returns the name of the function that begins in a line.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier =
        |word: &str| word.starts_with("pub") || ["const", "unsafe", "async", "extern", "\"C\""].contains(&word);
    (!line.ends_with('}') && before.split_whitespace().all(is_qualifier)).then(|| leading_name(after))
}

/// Returns the functions outside of tests that have too many lines.
fn long_functions(path: &Path, text: &str) -> Vec<String> {
    if suffix(path) != "rs" || path.iter().any(|part| part == "tests" || part == "tests.rs") {
        return Vec::new();
    }
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines: Vec<&str> = code.lines().collect();
    let long = lines.iter().enumerate().filter_map(|(start, line)| {
        let name = function_name(line)?;
        lines[start..].iter().find(|line| line.ends_with(['{', ';']))?.strip_suffix('{')?;
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let length = lines[start..].iter().position(|line| *line == end)? + 1;
        (length > MAX_FUNCTION_LINES).then(|| name.to_owned())
    });
    long.collect()
}

#[test]
fn no_further_function_is_too_long() {
    let body = "    a();\n".repeat(MAX_FUNCTION_LINES - 1);
    for start in ["fn f() {", "pub(crate) fn f(\n) {", "pub const unsafe extern \"C\" fn f() {"] {
        assert_violates(long_functions, "src/a.rs", &format!("{start}\n{body}}}\n"));
    }
    let mut long = Vec::new();
    for (path, text) in tracked() {
        long.extend(long_functions(&path, &text).into_iter().map(|name| (path.display().to_string(), name)));
    }
    long.sort();
    let mut exceptions = LONG_FUNCTIONS.map(|(path, name, _)| (path.to_owned(), name.to_owned()));
    exceptions.sort();
    assert_eq!(long, exceptions);
}

const MAX_COMMENT_COLUMNS: usize = 100;
/// rustfmt wraps code, but not what contains a long string.
const MAX_CODE_COLUMNS: usize = 120;

fn long_lines(path: &Path, text: &str) -> Vec<String> {
    if suffix(path) != "rs" {
        return Vec::new();
    }
    let mut is_example = false;
    let long = text.lines().filter(|line| {
        is_example ^= is_comment(line) && line.contains("```");
        // A row of a table is one line.
        let is_row = is_comment(line) && line.contains("// |") || line.contains("//! |");
        let is_prose = is_comment(line) && !is_example && !is_row;
        let columns = line.chars().count();
        is_prose && columns > MAX_COMMENT_COLUMNS
            || columns > MAX_CODE_COLUMNS && !is_row && (is_comment(line) || !line.contains('"'))
    });
    long.map(str::to_owned).collect()
}

#[test]
fn comments_and_code_are_wrapped() {
    assert_violates(long_lines, "a.rs", &format!("//! {}", "a".repeat(MAX_COMMENT_COLUMNS)));
    assert_violates(long_lines, "a.rs", &format!("// ```\n// {}\n// ```", "a".repeat(MAX_CODE_COLUMNS)));
    assert_violates(long_lines, "a.rs", &"a".repeat(MAX_CODE_COLUMNS + 1));
    assert_tree_complies(long_lines);
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
    (!has_header).then(|| format!("opens with `{first}`")).into_iter().collect()
}

#[test]
fn every_file_starts_with_a_header() {
    for (path, text) in [
        ("a.rs", "use std::fs;\n//! Late."),
        ("a.rs", "// Not of the module."),
        ("a.c", "#include <stdio.h>"),
        ("a.py", "#!/usr/bin/env python3\nimport os"),
        ("a.sh", "#!/usr/bin/env bash\nset -e"),
        ("a.sql", "CREATE TABLE a (b);"),
        ("a.rs", ""),
    ] {
        assert_violates(without_header, path, text);
    }
    assert_tree_complies(without_header);
}

/// Words that make a sentence hard to read: the field has plainer ones (report, record,
/// distinguish, no process, as many, therefore).
const HARD_WORDS: [&str; 7] = ["told", "dear", "so many", "nobody", "whence", "likewise", "whose doing"];

/// Returns the prose of a file: documents without their code blocks, and comments, from which the
/// help of the command line is generated.
fn prose<'a>(path: &Path, text: &'a str) -> Vec<&'a str> {
    let marks: &[&str] = match suffix(path) {
        "md" => return documents_prose(text),
        "rs" | "c" | "h" | "ts" | "mjs" => &["//", "/*"],
        "sh" | "py" | "toml" => &["# "],
        "sql" => &["-- "],
        _ => return Vec::new(),
    };
    text.lines().filter_map(|line| marks.iter().find_map(|mark| line.find(mark).map(|at| &line[at..]))).collect()
}

fn documents_prose(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ")
    });
    prose.collect()
}

/// Whether a line contains a word. An identifier such as `is_known` is one word.
fn has_word(line: &str, word: &str) -> bool {
    let line = line.to_lowercase();
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !before.ends_with(is_part_of_name) && !after.starts_with(is_part_of_name)
    })
}

fn hard_words(path: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(path, text) {
        let words = HARD_WORDS.into_iter().filter(|word| has_word(line, word));
        found.extend(words.map(|word| format!("`{word}` in `{}`", line.trim())));
    }
    found
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
            assert_violates(hard_words, path, &format!("{before} {word}, then."));
        }
    }
    let plain = ["let told = 1;", "un_told, untold"].join("\n// ");
    assert_eq!(hard_words(Path::new("a.rs"), &plain), Vec::<String>::new());
    assert_tree_complies(hard_words);
}

/// Returns the directories of this checkout and of its user. Raw results may name the machine, but
/// not these directories.
fn directories_of_this_machine() -> Vec<String> {
    let directories = [root().parent().map(Path::to_path_buf), std::env::var_os("HOME").map(PathBuf::from)];
    let directories = directories.into_iter().flatten();
    let directories = directories.filter(|directory| directory.components().count() > 1);
    directories.map(|directory| format!("{}/", directory.display())).collect()
}

/// User names in examples and tests.
const PLACEHOLDER_USERS: [&str; 3] = ["me", "token", "user"];

fn paths_of_a_machine(directories_of_this_machine: &[String], text: &str) -> Vec<String> {
    let own = directories_of_this_machine.iter().filter(|directory| text.contains(directory.as_str()));
    let homes = text.split("/home/").skip(1).filter_map(|rest| {
        let user = rest.split(|c: char| !c.is_alphanumeric()).next()?;
        (!user.is_empty() && !PLACEHOLDER_USERS.contains(&user)).then(|| format!("/home/{user}"))
    });
    own.cloned().chain(homes).collect()
}

#[test]
fn no_path_of_a_particular_machine_is_committed() {
    let own = ["/srv/checkouts/".to_owned()];
    for wrong in ["/srv/checkouts/spawnscope/a.rs", concat!("see /home", "/alice/notes")] {
        assert_violates(|_, text| paths_of_a_machine(&own, text), "a.md", wrong);
    }
    let own = directories_of_this_machine();
    assert_tree_complies(|_, text| paths_of_a_machine(&own, text));
}

/// Whether one of these files has a test whose name starts with `name`: a function with an
/// attribute, a row of a table of live tests, or a name in a call of vspawn's tests.
fn has_test<'a>(name: &str, mut files: impl Iterator<Item = &'a str>) -> bool {
    let (function, string) = (format!("fn {name}"), format!("test(\"{name}"));
    files.any(|text| {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        text.contains(&string)
            || (0..lines.len()).any(|at| lines[at].starts_with(&function) && is_below_attribute(&lines[..at]))
    })
}

/// Returns whether the lines end with the attributes of a test, perhaps with other rows of a table
/// of tests between.
fn is_below_attribute(lines: &[&str]) -> bool {
    for line in lines.iter().rev() {
        let is_row = line.starts_with("fn ") && line.contains(" = ");
        if !line.starts_with(['#', '/']) && !is_row && *line != "live_test! {" {
            return false;
        }
        if !is_row && line.contains("test") {
            return true;
        }
    }
    false
}

/// Returns the point and the tests of each row in the table of attacks. The cells of a row are a
/// point, an attack and its tests.
fn attacks(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let rows = text.lines().map(|line| line.split('|').collect::<Vec<_>>());
    rows.filter_map(|cells| {
        let point = cells.get(1)?.trim().parse().ok()?;
        assert_eq!(cells.len(), 5, "a row of three cells: {cells:?}");
        Some((point, cells[3]))
    })
}

/// Returns the tests that the table of attacks names. Words that are not names of tests have fewer
/// underscores.
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
    let table = "live_test! {\n    #[needs(Cc)]\n    fn a_first_row = f();\n    fn a_link_leads_nowhere = f();\n}";
    assert!(has_test("a_link_leads_nowhere", [table].into_iter()));
    for wrong in ["a_link_leads_somewhere", "a_helper_of_tests"] {
        assert!(!has_test(wrong, [source].into_iter()), "{wrong}");
    }

    let list = fs::read_to_string(root().join("crates/spawnscope/tests/attacks.md")).unwrap();
    let points: Vec<u32> = attacks(&list).map(|(point, _)| point).collect();
    assert!((1..=15).all(|point| points.contains(&point)), "{points:?}");
    let names = names_of_tests(&list);
    assert!(names.len() > 40, "names are found");
    assert_tests_exist(&names);
}

#[track_caller]
fn assert_tests_exist(names: &[&str]) {
    let files = tracked();
    let code: Vec<&str> =
        files.iter().filter(|(path, _)| suffix(path) == "rs").map(|(_, text)| text.as_str()).collect();
    let missing: Vec<_> = names.iter().filter(|name| !has_test(name, code.iter().copied())).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

/// The kernel matrix runs for minutes before it would refuse a name.
#[test]
fn each_test_of_the_kernel_matrix_exists() {
    let battery = fs::read_to_string(root().join("scripts/kernel-matrix/battery")).unwrap();
    let rows = battery.lines().filter(|line| !line.starts_with('#'));
    let tests = rows.filter_map(|row| row.split('\t').nth(1)?.rsplit(':').next());
    let names: Vec<&str> = tests.collect();
    assert!(names.len() > 20, "{names:?}");
    assert_tests_exist(&names);
}

/// Published packages do not contain the licence files of the workspace's directory, so each crate
/// has and includes its own.
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
            assert!(listed.lines().any(|file| file == licence), "{name} is without {licence}");
            let [own, common] =
                [&directory, &root()].map(|directory| fs::read_to_string(directory.join(licence)).unwrap());
            assert_eq!(own, common, "{licence} of {name}");
        }
    }
}
