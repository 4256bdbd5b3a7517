//! Checks the rules of the source tree that Cargo does not: what `present` imports, who prints, file lengths, file headers, and no paths of a
//! particular machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that formats findings. Crates keep all other stages apart; this one shares a crate with the command line.
const PRESENT: &str = "crates/spawnscope/src/present";
/// What it may use.
const PRESENT_MAY_IMPORT: [&str; 6] = ["event", "units", "analyze", "doctor", "lab", "present"];
const MOST_LINES: usize = 500;

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

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    path.extension()
        .and_then(|suffix| suffix.to_str())
        .is_some_and(|suffix| suffixes.contains(&suffix))
}

/// Returns the paths that a line names within the crate: `use crate::record::reader::X` gives `record::reader::X`.
fn named(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).map(|rest| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
            .next()
            .unwrap()
    })
}

#[test]
fn presentation_knows_findings_only() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in tracked().iter().filter(|(path, _)| path.starts_with(PRESENT)) {
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for name in named(line) {
                seen += 1;
                let module = name.split("::").next().unwrap();
                if !PRESENT_MAY_IMPORT.contains(&module) {
                    wrong.push(format!("{}: {name}", path.display()));
                }
            }
        }
    }
    assert!(seen > 40, "imports are found");
    assert_eq!(wrong, Vec::<String>::new());
}

/// Whether a file is source of the profiler, in any of its crates.
fn is_profiler_source(path: &Path) -> bool {
    let mut parts = path.iter().map(|part| part.to_str().unwrap_or_default());
    parts.next() == Some("crates")
        && parts.next().is_some_and(|name| name.starts_with("spawnscope"))
        && parts.next() == Some("src")
}

#[test]
fn one_place_prints_messages() {
    // Other code that writes to standard error: the report after a recording, and progress lines. Both contain only our own text.
    const MAY_WRITE: [&str; 4] = ["output.rs", "record.rs", "progress.rs", "bench/progress.rs"];
    let writes = |line: &str| {
        let line = line.trim_start();
        let is_print = ["eprint", "dbg!"].iter().any(|name| line.contains(name));
        !line.starts_with("//") && (is_print || line.contains("stderr()") && !line.contains("width("))
    };
    let cli = Path::new("crates/spawnscope/src/cli");
    let mut wrong = Vec::new();
    for (path, text) in tracked().iter().filter(|(path, _)| is_profiler_source(path)) {
        let may_write = path
            .strip_prefix(cli)
            .is_ok_and(|path| MAY_WRITE.iter().any(|name| path == Path::new(name)));
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code
            .lines()
            .filter(|line| writes(line) && !may_write && !line.contains("use_stderr"));
        wrong.extend(lines.map(|line| format!("{}: {line}", path.display())));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn files_are_of_a_size_to_be_read() {
    let code = tracked()
        .into_iter()
        .filter(|(path, _)| has_suffix(path, &["rs", "c", "h", "py", "sh"]));
    let long: Vec<_> = code
        // Tests are lists, so they may be long.
        .filter(|(_, text)| text.lines().count() > MOST_LINES)
        .map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn every_file_opens_with_what_it_is() {
    let mut bare = Vec::new();
    for (path, text) in tracked() {
        let mut lines = text.lines().filter(|line| !line.starts_with("#!/"));
        let head = lines.next().unwrap_or_default();
        let opens = if has_suffix(&path, &["rs"]) {
            head.starts_with("//!")
        } else if has_suffix(&path, &["c", "h"]) {
            head.starts_with("//") || head.starts_with("/*")
        } else if has_suffix(&path, &["py"]) {
            head.starts_with("\"\"\"") || head.starts_with('#')
        } else if has_suffix(&path, &["sh"]) {
            head.starts_with('#')
        } else if has_suffix(&path, &["sql"]) {
            head.starts_with("--")
        } else {
            continue;
        };
        if !opens {
            bare.push(path);
        }
    }
    assert_eq!(bare, Vec::<PathBuf>::new());
}

#[test]
fn no_path_of_a_machine_is_kept() {
    let here = root();
    // Raw results may name the machine, but not a user's folder.
    let places = [
        here.parent().map(Path::to_path_buf),
        std::env::var_os("HOME").map(PathBuf::from),
    ];
    let places: Vec<String> = places
        .into_iter()
        .flatten()
        .filter(|place| place.components().count() > 1)
        .map(|place| format!("{}/", place.display()))
        .collect();
    for (path, text) in tracked() {
        for place in &places {
            assert!(!text.contains(place.as_str()), "{}: {place}", path.display());
        }
    }
}

#[test]
fn each_test_that_the_list_of_attacks_names_is_there() {
    let tracked = tracked();
    let list = fs::read_to_string(root().join("docs/design/trust.md")).unwrap();
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| ")).collect();
    let points: Vec<u32> = rows
        .iter()
        .filter_map(|row| row.split('|').nth(1)?.trim().parse().ok())
        .collect();
    assert!((1..=15).all(|point| points.contains(&point)), "{points:?}");
    let words = rows.iter().filter(|row| row.split('|').count() == 5).flat_map(|row| {
        let tests = row.split('|').nth(3).unwrap_or_default();
        tests.split(|c: char| !c.is_alphanumeric() && c != '_')
    });
    // Words that are not test names are short. A name may be a prefix of several tests.
    let names: Vec<&str> = words.filter(|word| word.matches('_').count() >= 2).collect();
    assert!(names.len() > 40, "names are found");
    let code = tracked.iter().filter(|(path, _)| has_suffix(path, &["rs"]));
    let code: Vec<&str> = code.map(|(_, text)| text.as_str()).collect();
    let is_there = |name: &&&str| {
        let forms = [format!("fn {name}"), format!("\"{name}")];
        code.iter().any(|text| forms.iter().any(|form| text.contains(form)))
    };
    let missing: Vec<_> = names.iter().filter(|name| !is_there(name)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
