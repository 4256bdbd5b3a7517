//! Tests how the outputs show failed execs.

use anstream::adapter::strip_str;
use spawnscope::analyze::failures::failures;
use spawnscope::analyze::{Forest, GroupBy, report};
use spawnscope::present::{json, table, tree};
use spawnscope::record::reader::Recording;

use crate::recordings::failing;

#[test]
fn permission_denied_takes_precedence_over_a_missing_file() {
    let recording = failing(&[("/a/x", libc::ENOENT), ("/b/x", libc::EACCES), ("/c/x", libc::ENOENT)]);
    let never_launched = failures(&Forest::build(&recording)).0.not_found;
    assert_eq!((never_launched.len(), never_launched[0].errno), (1, libc::EACCES));
    let text = report_text(&recording);
    assert!(
        text.contains("  never launched  ") && text.contains("  x (permission denied)  "),
        "{text}"
    );
    assert!(!text.contains("Failed execs outside of PATH searches"), "{text}");
}

fn report_text(recording: &Recording) -> String {
    let text = table::render(&report(recording, GroupBy::Command), &table::Options::default());
    strip_str(&text).to_string()
}

#[test]
fn failed_execs_outside_of_searches_are_grouped_by_errno() {
    let recording = failing(&[
        ("/opt/data", libc::ENOEXEC),
        ("./a", libc::EACCES),
        ("./b", libc::EACCES),
        ("./b", libc::EACCES),
    ]);
    let text = report_text(&recording);
    assert!(
        text.contains("\n  3 x EACCES (permission denied): ./b and 1 other file\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  1 x ENOEXEC (not an executable format): /opt/data\n"),
        "{text}"
    );
    assert!(!text.contains("\nPATH search\n"), "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&json::render(&report(&recording, GroupBy::Command))).unwrap();
    assert_eq!(
        parsed["failed_execs_by_errno"][0],
        serde_json::json!({"errno": libc::EACCES, "count": 3, "files": 2, "path": "./b"})
    );
}

#[test]
fn the_tree_names_failed_execs_that_are_not_misses() {
    let recording = failing(&[
        ("/a/x", libc::ENOENT),
        ("/b/x", libc::ENOENT),
        ("/opt/data", libc::ENOEXEC),
        ("/opt/data", libc::ENOEXEC),
        ("./denied", libc::EACCES),
    ]);
    let shown = |width| {
        let mut text = Vec::new();
        tree::write(&mut text, &Forest::build(&recording), width).unwrap();
        strip_str(std::str::from_utf8(&text).unwrap()).to_string()
    };
    let whole = shown(None);
    assert!(
        whole.contains("  2 PATH misses  2 x ENOEXEC /opt/data  EACCES ./denied  "),
        "{whole}"
    );
    let cut = shown(Some(80));
    assert!(cut.contains("  2 x ENOEXEC /opt/data  1 more failed exec"), "{cut}");
}
