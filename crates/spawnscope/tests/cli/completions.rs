//! Shell completions.

use super::{failure, stdout};
use crate::texts::assert_contains;

#[test]
fn completions_offer_every_verb_of_the_help_but_no_hidden_one() {
    let help = stdout(&["--help"]);
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty());
    // The description of a verb continues on further-indented lines.
    let verbs = verbs.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let verbs: Vec<&str> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.len() > 8, "{help}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        for word in verbs.iter().chain(&["no-redact", "version"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        for hidden in ["lab-worker", "lab_worker", "Launch for `bench`", "man pages"] {
            assert!(!script.contains(hidden), "{shell}: {hidden}");
        }
    }
}

/// A verb, one of its options (or none, for the arguments of the verb itself), and some of the
/// values to complete.
const VALUES: [(&str, &str, &[&str]); 8] = [
    ("report", "by", &["command", "args", "parent", "line", "caller"]),
    ("advise", "rule", &["builtin", "many-per-launch"]),
    ("export", "format", &["ndjson", "perfetto"]),
    ("flame", "phase", &["create", "load", "reap"]),
    ("flame", "weight", &["wall", "critical"]),
    ("bench", "", &["mechanisms", "first-launch"]),
    ("doctor", "", &["scanners", "shims"]),
    ("doctor", "except", &["scanners", "shims"]),
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
