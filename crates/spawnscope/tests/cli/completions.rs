//! Shell completions.

use std::process::Command;

use super::{VERBS, stdout};

#[test]
fn completions_contain_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell]);
        for word in VERBS.into_iter().chain(["no-redact"]) {
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
        let beginning = if option.is_empty() {
            "-f -a \"".to_owned()
        } else {
            format!("-l {option} ")
        };
        let lines = script.split("\ncomplete ");
        let line = lines
            .into_iter()
            .find(|line| line.contains(&verb_lines) && line.contains(&beginning));
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
        let (_, verb_lines) = script
            .split_once(&format!("spawnscope__subcmd__{verb})\n            opts="))
            .unwrap();
        let (verb_lines, _) = verb_lines
            .split_once("\n        spawnscope__subcmd__")
            .unwrap_or((verb_lines, ""));
        let words = match option {
            "" => verb_lines.lines().next().unwrap(),
            option => verb_lines
                .split_once(&format!("--{option})"))
                .unwrap()
                .1
                .lines()
                .nth(1)
                .unwrap(),
        };
        for value in values {
            assert!(words.contains(value), "{verb} {option}: {words}");
        }
    }
}

#[test]
fn an_unknown_verb_gets_a_tip_to_record_it_as_a_command() {
    let answer = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_spawnscope"))
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125));
        String::from_utf8(output.stderr).unwrap()
    };
    let make = answer(&["make", "-j8"]);
    assert!(
        make.contains("tip: did you mean `spawnscope record -- make -j8`?"),
        "{make}"
    );
    assert!(!make.contains("'man'"), "hidden verbs are not suggested: {make}");
    let reprot = answer(&["reprot"]);
    assert!(reprot.contains("'report'"), "{reprot}");
    let nosuch = answer(&["nosuch"]);
    assert!(!nosuch.contains("similar"), "{nosuch}");
}
