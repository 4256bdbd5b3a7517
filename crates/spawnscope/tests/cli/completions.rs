//! Shell completions.

use super::texts::assert_contains;
use super::{VERBS, failure, stdout};

#[test]
fn completions_contain_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell]);
        for word in VERBS.split(' ').chain(["no-redact"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

/// A verb, one of its options (or none, for the arguments of the verb itself), and some of the values to complete.
const VALUES: [(&str, &str, &[&str]); 8] = [
    ("report", "by", &["command", "args", "parent", "line", "caller"]),
    ("advise", "rule", &["builtin", "batch"]),
    ("export", "format", &["ndjson", "perfetto"]),
    ("flame", "phase", &["create", "load", "reap"]),
    ("flame", "weight", &["wall", "critical"]),
    ("bench", "", &["mechanisms", "copy-on-write"]),
    ("doctor", "", &["scanners", "shell-start"]),
    ("doctor", "except", &["scanners", "shell-start"]),
];

#[test]
fn fish_completes_values() {
    let script = stdout(&["completions", "fish"]);
    for (verb, option, values) in VALUES {
        let verb_lines = format!("using_subcommand {verb}\"");
        let beginning = match option {
            "" => "-f -a \"".to_owned(),
            option => format!("-l {option} "),
        };
        let mut lines = script.split("\ncomplete ");
        let line = lines.find(|line| line.contains(&verb_lines) && line.contains(&beginning));
        let line = line.unwrap_or_else(|| panic!("{verb} {option}"));
        for value in values {
            assert!(line.contains(value), "{verb} {option}: {line}");
        }
    }
    // Files are offered only where they make sense.
    let sizes = script.lines().find(|line| line.contains("-l max")).unwrap();
    assert!(sizes.ends_with(" -r -f"), "{sizes}");
}

#[test]
fn bash_completes_values() {
    let script = stdout(&["completions", "bash"]);
    for (verb, option, values) in VALUES {
        let beginning = format!("spawnscope__subcmd__{verb})\n            opts=");
        let (_, verb_lines) = script.split_once(&beginning).unwrap();
        let verb_lines = verb_lines.split("\n        spawnscope__subcmd__").next().unwrap();
        let words = match option {
            "" => verb_lines.lines().next().unwrap(),
            option => {
                let (_, values) = verb_lines.split_once(&format!("--{option})")).unwrap();
                values.lines().nth(1).unwrap()
            }
        };
        for value in values {
            assert!(words.contains(value), "{verb} {option}: {words}");
        }
    }
}

#[test]
fn an_unknown_verb_gets_a_tip_to_record_it_as_a_command() {
    let make = failure(&["make", "-j8"]);
    assert_contains(&make, ["tip: did you mean `spawnscope record -- make -j8`?"]);
    assert!(!make.contains("'man'"), "hidden verbs are not suggested: {make}");
    let reprot = failure(&["reprot"]);
    assert!(reprot.contains("'report'"), "{reprot}");
    let nosuch = failure(&["nosuch"]);
    assert!(!nosuch.contains("similar"), "{nosuch}");
}
