//! Tests how the outputs show failed execs.

use serde_json::{Value, json};
use spawnscope::analyze::waits::failed_execs::failures;

use crate::prelude::*;
use crate::recordings::failing;

#[test]
fn permission_denied_takes_precedence_over_a_missing_file() {
    let recording = failing(&[("/a/x", libc::ENOENT), ("/b/x", libc::EACCES), ("/c/x", libc::ENOENT)]);
    let never_launched = failures(&Forest::build(&recording)).0.not_found;
    assert_eq!((never_launched.len(), never_launched[0].errno), (1, libc::EACCES));
    let text = table_of(&by_command(&recording));
    assert_contains(&text, ["  never launched  ", "  x (permission denied)  "]);
    assert!(!text.contains("Failed execs outside of PATH searches"), "{text}");
}

#[test]
fn failed_execs_outside_of_searches_are_grouped_by_errno() {
    let recording =
        failing(&[("/opt/data", libc::ENOEXEC), ("./a", libc::EACCES), ("./b", libc::EACCES), ("./b", libc::EACCES)]);
    let text = table_of(&by_command(&recording));
    let denied = "\n  3 x EACCES (permission denied): ./b and 1 other file\n";
    let not_executable = "\n  1 x ENOEXEC (not an executable format): /opt/data\n";
    assert_contains(&text, [denied, not_executable]);
    assert!(!text.contains("\nPATH search\n"), "{text}");
    let parsed: Value = serde_json::from_str(&json::render(&by_command(&recording))).unwrap();
    let denied = json!({"errno": libc::EACCES, "count": 3, "files": 2, "path": "./b"});
    assert_eq!(parsed["failed_execs_by_errno"][0], denied);
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
    let whole = plain(&styled_tree(&recording, None));
    assert_contains(&whole, ["  2 PATH misses  2 x ENOEXEC /opt/data  EACCES ./denied  "]);
    let cut = plain(&styled_tree(&recording, Some(80)));
    assert_contains(&cut, ["  2 x ENOEXEC /opt/data  1 more failed exec"]);
}
