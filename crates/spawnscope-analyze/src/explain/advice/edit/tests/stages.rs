//! Tests of edits of pipelines, and of edits for zsh, which are executed.

use super::Calls;
use super::executed::{BOTH, check, run};
use crate::explain::advice::edit::{Form, Operand};
use crate::patterns::shells::Dialect;

#[test]
fn a_redirection_replaces_cat() {
    let feed = |recorded: &str, script: &str, expected: &str| {
        check(BOTH, "cat", &[recorded], Form::Feed, script, expected);
    };
    feed("./plain", "for f in ./*; do cat \"$f\" | sort -r | head -n 1; done\n", "do sort -r <\"$f\" | head -n 1;");
    feed("x.c", "f=x.c; n=$(cat $f | wc -l); echo $n\n", "n=$(wc -l <\"$f\");");
    feed("with space", "cat 'with space' | sort\n", "sort <'with space'");
}

#[test]
fn zsh_computes_what_it_assigns() {
    let zsh = |recorded: &[&str], steps: &[&str], script: &str| {
        let form =
            Form::Steps { operand: Operand::First, steps: steps.iter().map(|step| (*step).to_owned()).collect() };
        let mut calls = Calls::of("basename", &[recorded], form);
        calls.rewrite.dialect = Dialect::Zsh;
        calls.edit(2, script)
    };
    let script = |line: &str| format!("setopt extended_glob\nfor f in ./*; do {line}; print -r -- \"$b\"; done\n");
    let assigned = script("b=$(basename $f .c)");
    let edited = zsh(&["./plain", ".c"], &["##*/", "%{2}"], &assigned).unwrap();
    assert!(edited.contains("b=${f##*/}; b=${b%.c}"), "{edited}");
    assert_eq!(run("zsh", &edited).0, run("zsh", &assigned).0);
    zsh(&["./plain", ".c"], &["##*/", "%{2}"], &script("b=x$(basename $f .c)")).unwrap_err();
    let quoted = script("b=$(print -r -- \"$(basename $f .c)\")");
    let edited = zsh(&["./plain", ".c"], &["##*/", "%{2}"], &quoted).unwrap();
    assert_eq!(run("zsh", &edited).0, run("zsh", &quoted).0, "{edited}");
    zsh(&["./plain", ".c"], &["##*/", "%{2}"], &quoted.replace('"', "")).unwrap_err();
    let mut lower = Calls::of("tr", &[&["A-Z", "a-z"]], Form::Captured("${(L):-{x}}".to_owned()));
    lower.rewrite.dialect = Dialect::Zsh;
    let filtered = "for f in ./* 'A  B' ''; do b=$(echo \"${f##*/}\" | tr A-Z a-z); print -r -- \"$b\"; done\n";
    let edited = lower.edit(1, filtered).unwrap();
    assert_eq!(run("zsh", &edited).0, run("zsh", filtered).0, "{edited}");
    zsh(&["./plain", "#c"], &["##*/", "%#c"], &script("b=$(basename $f \"#c\")")).unwrap_err();
}

#[test]
fn a_function_prints_what_a_filter_printed() {
    let calls = "for f in 'with space' 'with  ' x ''; do x=$(trim \"$f\"); echo \"[$x]\"; trim \"$f\"; done\n";
    let trim = |body: &str, steps: &[&str], expected: &str| {
        let form = Form::of_input(steps.iter().map(|step| (*step).to_owned()));
        check(BOTH, "sed", &["s/^with //"], form, &format!("trim() {{\n  {body}\n}}\n{calls}"), expected);
    };
    let form = "echo \"$1\" | sed 's/^with //'";
    trim(form, &["#with "], "printf '%s\\n' \"${1#with }\"\n}");
    trim(
        form,
        &["#with ", "%zz"],
        "sed_result=${1#with }; sed_result=${sed_result%zz}; printf '%s\\n' \"$sed_result\"\n",
    );
    trim(&format!("[ -z \"$1\" ] || {form}"), &["#with "], "|| printf");
    let sed = Calls::of("sed", &[&["s/^with //"]], Form::of_input(["#with ".to_owned()]));
    sed.refuses(&[
        ("printf %s \"$1\" | sed 's/^with //'", "newline"),
        ("echo \"$1\" | sed 's/^with //' >x", "input of sed"),
        ("echo \"$1\" | sed 's/^with //' | cat", "input of sed"),
    ]);
}

#[test]
fn grep_counts_itself() {
    let count = |script: &str, expected: &str| check(BOTH, "wc", &["-l"], Form::Feed, script, expected);
    let line =
        |call: &str| format!("for p in a '-x' 'with space' '' none; do\n  n=$({call} | wc -l)\n  echo \"$n\"\ndone\n");
    count(&line("ls ./* | grep -iv '^none$'"), "n=$(ls ./* | grep -c -iv '^none$' || :)");
    count(&line("cat x.c | sort | grep \"n$p\""), "| grep -c \"n$p\" || :)");
    count(&line("grep -F of <x.c"), "n=$(grep -c -F of <x.c || :)");
    count(&format!("set -o pipefail 2>/dev/null || :\n{}", line("ls | grep x")), "n=$(ls | grep -c x)");
    for other in [
        "grep x x.c", "ls | grep -o x", "ls | grep $p", "ls | grep -e x", "f | grep x", "ls | grep x y",
        "{ ls; } | grep x",
    ] {
        let script = format!("f() {{ ls; }}\n{}", line(other));
        Calls::of("wc", &[&["-l"]], Form::Feed).edit(3, &script).expect_err(other);
    }
}

#[test]
fn the_last_filter_of_several_becomes_a_statement() {
    let last = Form::Steps { operand: Operand::Input, steps: vec!["##*b".to_owned()] };
    let cut = |script: &str, expected: &str| check(BOTH, "cut", &["-db", "-f2"], last.clone(), script, expected);
    cut("y=abc; x=`echo $y | cut -db -f2`; echo $x\n", "x=${y##*b};");
    cut("echo abc >x.c; x=$(head -n 1 x.c | cut -db -f2)\necho \"$x\"\n", "x=$(head -n 1 x.c) || :; x=${x##*b}\n");
    cut("x=$(md5sum ./none 2>/dev/null | cut -db -f2)\necho \"$x\"\n", "x=$(md5sum ./none 2>/dev/null) || :;");
    let checked = "set -o pipefail; x=$(md5sum ./none 2>/dev/null | cut -db -f2)\necho \"$x\"\n";
    check(&["bash"], "cut", &["-db", "-f2"], last.clone(), checked, "x=$(md5sum ./none 2>/dev/null); x=${x##*b}\n");
    cut("y=abc; x=$(echo \"$y\" | tr a A | cut -db -f2)\necho \"$x\"\n", "x=$(echo \"$y\" | tr a A); x=${x##*b}\n");
}
