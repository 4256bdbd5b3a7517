//! Shell completions.

use std::process::Command;

use super::{VERBS, stdout};

#[test]
fn completions_know_every_verb() {
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&["completions", shell]);
        for word in VERBS.into_iter().chain(["no-redact"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}

/// An option or a verb with values, and some of these values.
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
        let of_verb = format!("using_subcommand {verb}\"");
        let beginning = if option.is_empty() {
            "-f -a \"".to_owned()
        } else {
            format!("-l {option} ")
        };
        let lines = script.split("\ncomplete ");
        let line = lines
            .into_iter()
            .find(|line| line.contains(&of_verb) && line.contains(&beginning));
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
        let (_, of_verb) = script
            .split_once(&format!("spawnscope__subcmd__{verb})\n            opts="))
            .unwrap();
        let (of_verb, _) = of_verb
            .split_once("\n        spawnscope__subcmd__")
            .unwrap_or((of_verb, ""));
        let words = match option {
            "" => of_verb.lines().next().unwrap(),
            option => of_verb
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
fn a_command_in_place_of_a_verb_is_answered_with_record() {
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
