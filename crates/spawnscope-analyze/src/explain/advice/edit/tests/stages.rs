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
    count(&line("grep x x.c"), "n=$(grep -c x x.c || :)");
    for other in ["grep x $p", "ls | grep -o x", "ls | grep $p", "ls | grep -e x", "f | grep x", "{ ls; } | grep x"] {
        let script = format!("f() {{ ls; }}\n{}", line(other));
        Calls::of("wc", &[&["-l"]], Form::Feed).edit(3, &script).expect_err(other);
    }
}

#[test]
fn grep_stops_itself() {
    let head = |script: &str, expected: &str| check(BOTH, "head", &["-n", "1"], Form::Feed, script, expected);
    let line = |call: &str| format!("for p in a with none; do\n  n=$({call})\n  echo \"$n\"\ndone\n");
    head(&line("ls | grep \"$p\" | head -n 1"), "n=$(ls | grep -m 1 \"$p\" || :)");
    head(&line("grep of x.c | head -n 1 | tr o O"), "n=$(grep -m 1 of x.c | tr o O)");
    let calls = Calls::of("head", &[&["-n", "1"]], Form::Feed);
    for other in ["ls | grep -c x | head -n 1", "ls | head -n 1", "grep x ./* | head -n 1", "ls | grep x | head -c1"] {
        calls.edit(2, &line(other)).expect_err(other);
    }
    calls.edit(1, "ls | grep x | head -n 1\n").unwrap_err();
    for recorded in [&["-c1"][..], &["-n", "-1"], &["-n", "0"]] {
        let script = format!("n=$(ls | grep x | head {})\n", recorded.join(" "));
        Calls::of("head", &[recorded], Form::Feed).edit(1, &script).expect_err(&script);
    }
}

#[test]
fn awk_finds_lines_itself() {
    let make = "printf 'a=1=x\\nb=2\\n=3 @A@\\nab=4\\n/d b.c/=x\\n' >x.c\n";
    let grep = |recorded: &[&str], call: &str, expected: &str| {
        let script = format!("{make}for k in b; do\n  n=$({call})\n  echo \"$n\"\ndone\n");
        check(BOTH, "grep", recorded, Form::Feed, &script, expected);
    };
    grep(&["^b=", "x.c"], "grep '^b=' x.c | cut -d= -f2", "n=$(awk -F= '/^b=/{print $2}' <x.c)");
    grep(&["^b=", "x.c"], "grep \"^$k=\" x.c | cut -f 2 -d '='", "awk -F= \"/^${k}=/\"'{print $2}' <x.c)");
    grep(&["b"], "cat x.c | grep b | awk -F= '{ print $1, $2 }'", "cat x.c | awk -F= '/b/{ print $1, $2 }'");
    grep(&["-E", "b|A", "x.c"], "grep -E 'b|A' x.c | awk '{print $2}' | sort", "awk '/b|A/{print $2}' <x.c | sort)");
    grep(&["/d b\\.", "x.c"], "grep '/d b\\.' x.c | awk '{print $1}'", "awk '/\\/d b\\./{print $1}' <x.c");
    let script = format!("AWK=/usr/bin/awk\n{make}n=$(grep b x.c | $AWK '{{print $1}}')\necho \"$n\"\n");
    check(BOTH, "grep", &["b", "x.c"], Form::Feed, &script, "n=$($AWK '/b/{print $1}' <x.c)");
    for (recorded, other) in [
        (&["b", "x.c"][..], "grep b x.c | cut -d= -f2"),
        (&["-E", "^b=|d", "x.c"], "grep -E '^b=|d' x.c | cut -d= -f2"),
        (&["^b=", "x.c"], "grep ^b= x.c | cut -d= -f2-"),
        (&["-v", "b", "x.c"], "grep -v b x.c | awk '{print $2}'"),
        (&["-i", "b", "x.c"], "grep -i b x.c | awk '{print $2}'"),
        (&["b", "x.c"], "grep b x.c | awk 'NR==1{print $2}'"),
        (&["b.", "x.c"], "grep b. x.c | awk '{print $2}'"),
        (&["b", "x.c"], "grep b x.c | awk '{print NR, $2}'"),
        (&["b", "x.c"], "set -o pipefail; grep b x.c | awk '{print $2}'"),
        (&["b+"], "ls | grep \"$k\" | awk '{print $2}'"),
    ] {
        let calls = Calls::of("grep", &[recorded], Form::Feed);
        calls.edit(1, &format!("n=$({other})\n")).expect_err(other);
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
