//! Tests of edits of pipelines, and of edits for zsh, which are executed.

use super::executed::{BOTH, check, pass, run};
use super::{Calls, steps};
use crate::explain::advice::edit::{Edit, Form, Host, Operand, Rewrite, spliced};
use crate::explain::advice::phrases::ONE_LINE_LIMIT;
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
    let declared = script("typeset b=$(basename $f .c)");
    let edited = zsh(&["./plain", ".c"], &["##*/", "%{2}"], &declared).unwrap();
    assert!(edited.contains("typeset b=; b=${f##*/}"), "{edited}");
    assert_eq!(run("zsh", &edited).0, run("zsh", &declared).0);
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
    trim(&format!("{form} | cat"), &["#with "], "printf '%s\\n' \"${1#with }\" | cat\n}");
    let sed = Calls::of("sed", &[&["s/^with //"]], Form::of_input(["#with ".to_owned()]));
    sed.refuses(&[
        ("printf %s \"$1\" | sed 's/^with //'", "newline"),
        ("echo \"$1\" | sed 's/^with //' >x", "input of sed"),
        ("cat x | sed 's/^with //' | cat", "input of sed"),
        ("echo \"$1\" | rev | sed 's/^with //' | cat", "input of sed"),
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
fn one_sed_does_what_its_neighbours_did() {
    let make = "printf 'a=1=x\\nb=2\\n=3 @A@\\nab=4\\n/d b.c/=x\\n' >x.c\n";
    let text = |call: &str| format!("{make}for f in x.c ./-leading; do\n  n=$({call})\n  echo \"$n\"\ndone\n");
    let join = |recorded: &[&str], call: &str, expected: &str| {
        check(BOTH, recorded[0], &recorded[1..], Form::Feed, &text(call), expected);
    };
    join(
        &["sed", "s/a/b/", "x.c"],
        "sed s/a/b/ \"$f\" | sed 's/b/c/g;2d'",
        "n=$(sed -e s/a/b/ -e 's/b/c/g;2d' \"$f\")",
    );
    join(&["sed", "-e", "1d"], "cat \"$f\" | sed -e 1d | sed -e 's,=,;,' | sort", "| sed -e 1d -e 's,=,;,' | sort)");
    join(&["sed", "-E", "s/(a|b)+/x/"], "sed -E 's/(a|b)+/x/' <$f | sed -E 's/x|y/z/'", "sed -E -e");
    join(&["head", "-n", "2", "x.c"], "head -n 2 \"$f\" | sed 's/a/b/'", "n=$(sed -e s/a/b/ -e 2q \"$f\")");
    join(&["head", "-1"], "sed 's/a/b/' \"$f\" | head -1", "n=$(sed -e s/a/b/ -e 1q \"$f\")");
    join(
        &["grep", "a", "x.c"],
        "grep a \"$f\" | sed 's/a/b/; s/=.*//'",
        "n=$(sed -e '/a/!d' -e 's/a/b/; s/=.*//' \"$f\")",
    );
    join(&["grep", "-m1", "^[ab]*=", "x.c"], "grep -m1 '^[ab]*=' \"$f\" | sed s/a/b/", "-e s/a/b/ -e q \"$f\")");
    join(&["grep", "-v", "a"], "cat \"$f\" | grep -v a | sed 's/b/\\/c/'", "| sed -e /a/d -e 's/b/\\/c/')");
    let printed = format!("{make}sed 1d x.c | sed s/b/c/ >y; head -n 1 x.c | sed s/a/b/ >>y\n");
    check(BOTH, "sed", &["1d", "x.c"], Form::Feed, &printed, "sed -e 1d -e s/b/c/ x.c >y;");
    for (recorded, other) in [
        (&["sed", "/a/d", "x.c"][..], "sed /a/d x.c | sed 1d"),
        (&["sed", "/a/d", "x.c"], "sed /a/d x.c | head -n 1"),
        (&["head", "-n", "2", "x.c"], "head -n 2 x.c | sed '$d'"),
        (&["head", "-n", "2", "x.c"], "head -n 2 x.c | sed /a/d"),
        (&["sed", "s/a/\\n/", "x.c"], "sed 's/a/\\n/' x.c | sed s/x/y/"),
        (&["sed", "-n", "s/a/b/p", "x.c"], "sed -n s/a/b/p x.c | sed s/x/y/"),
        (&["sed", "s/a/b/", "x.c"], "sed s/a/b/ x.c | sed -E 's/(b)/x/'"),
        (&["sed", "s/a/b/", "x.c"], "sed s/a/b/ x.c | sed 's//c/'"),
        (&["sed", "s/a/b/", "x.c"], "sed s/a/b/ x.c | sed s/x/y/ other"),
        (&["sed", "s/a/b/", "x.c"], "sed s/a/b/ x.c 2>/dev/null | sed s/x/y/"),
        (&["sed", "s/a/b/", "x.c"], "sed s/a/b/ x.c | sed \"s/x/$y/\""),
        (&["sed", "s/a/b/", "x.c"], "sed s/a/b/ x.c | sed -e"),
        (&["sed", "s/a/b/;b;s/c/d/", "x.c"], "sed 's/a/b/;b;s/c/d/' x.c | sed s/x/y/"),
        (&["grep", "-c", "a", "x.c"], "grep -c a x.c | sed s/a/b/"),
        (&["grep", "a", "x.c"], "grep a ./* | sed s/a/b/"),
        (&["grep", "a", "x.c"], "set -o pipefail; grep a x.c | sed s/a/b/"),
        (&["grep", "a", "x.c"], "grep a x.c | sed s/a/b/ | wc -l"),
    ] {
        let calls = Calls::of(recorded[0], &[&recorded[1..]], Form::Feed);
        calls.edit(1, &format!("n=$({other})\n")).expect_err(other);
    }
    Calls::of("grep", &[&["a", "x.c"]], Form::Feed).edit(1, "grep a x.c | sed s/a/b/ >y\n").unwrap_err();
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
    let local = "f() {\n  local x=$(echo \"$1\" | tr a ' ' | cut -db -f2)\n  echo \"$x\"\n}\nf abc; f aab\n";
    check(&["bash"], "cut", &["-db", "-f2"], last.clone(), local, "  local x=$(echo \"$1\" | tr a ' '); x=${x##*b}\n");
    let counted = "f() { local ms=$(head -n1 \"$1\" | cut -db -f2); echo $((ms + 0)); }\n";
    let of_lines = Calls::of("cut", &[&["-db", "-f2"]], last.clone()).one_line();
    assert!(of_lines.edit(1, counted).unwrap().contains("ms=${ms##*b};"));
    let nested = "for y in abc aab; do\n  echo \"<$(echo \"$y\" | tr a A | cut -db -f2)>\" end\ndone\n";
    let expected = "  cut_input=$(echo \"$y\" | tr a A) || :; ";
    check(BOTH, "cut", &["-db", "-f2"], last.clone(), nested, expected);
    check(&["dash"], "cut", &["-db", "-f2"], last, local, "  local x=\"$(echo \"$1\" | tr a ' ')\"; x=${x##*b}\n");
}

#[test]
fn the_shell_counts_the_characters_of_a_text() {
    let count = |feeder: &str, expected: &str| {
        let script = format!("for s in 'a b' '' x; do\n  n=$({feeder} | wc -c)\n  echo \"$n\"\ndone\n");
        check(BOTH, "wc", &["-c"], Form::Word("{#x}".to_owned()), &script, expected);
    };
    count("echo -n \"$s\"", "n=${#s}\n");
    count("printf %s \"$s\"", "n=${#s}\n");
    count("printf '%s\\n' \"$s\"", "n=$((${#s} + 1))\n");
    count("echo \"$s\"", "n=$((${#s} + 1))\n");
    let wc = Calls::of("wc", &[&["-c"]], Form::Word("{#x}".to_owned()));
    let head = Calls::of("head", &[&["-c3"]], Form::of_input([":0:3".to_owned()]));
    head.refuses(&[("x=$(tr -dc a-z </dev/urandom | head -c3)", "text of a variable")]);
    wc.refuses(&[("n=$(echo \"a$s\" | wc -c)", "variable"), ("n=$(cat x | wc -c)", "text of a variable")]);
}

#[test]
fn a_library_does_not_know_what_other_files_pass() {
    let sed = Calls::of("sed", &[&["s/^a//"]], Form::of_input(["#a".to_owned()])).one_line();
    let library = "trim() { echo \"$1\" | sed 's/^a//'; }\nboth() { trim \"$1\"; trim \"$2\"; }\n";
    assert!(sed.edit(1, library).unwrap().starts_with("trim() { printf '%s\\n' \"${1#a}\"; }"));
    assert!(sed.limits(library).contains(&ONE_LINE_LIMIT));
    assert!(!sed.limits(&format!("{library}both a b\n")).contains(&ONE_LINE_LIMIT));
    assert!(sed.edit(1, &format!("{library}trim \"$(ls)\"\n")).is_err());
}

#[test]
fn the_placeholder_of_xargs_is_a_part_of_words() {
    let code = "n=$(wc -l < \"{}\"); echo \"{}: $n\"; cat {} >x{}_y";
    let script = format!("grep -v '[ *]' ../list | xargs -I{{}} sh -c '{code}'\n");
    let looped = "'for f; do n=$(wc -l < \"$f\"); echo \"$f: $n\"; cat \"$f\" >x\"$f\"_y; done' sh\n";
    pass("xargs", &["-I{}", "sh", "-c", code], &script, looped);
    for other in ["echo \"a\"{}", "{} x", "echo \"{}\" $1", "x={}; y", "echo \"$(echo \"a\"{})\""] {
        let script = format!("x | xargs -I{{}} sh -c '{other}'\n");
        let edited = Calls::of("xargs", &[&["-I{}", "sh", "-c", other]], Form::Pass).edit(1, &script);
        assert_eq!(edited.is_ok(), other.starts_with("x="), "{other}: {edited:?}");
    }
}

#[test]
fn make_takes_paths_apart() {
    for (program, step, function) in
        [("dirname", "%/*", "$(patsubst %/,%,$(dir $@))"), ("basename", "##*/", "$(notdir $@)")]
    {
        let makefile =
            format!(".PHONY: all\nall: a/b/c.o a/c.o\n%.o:\n\t@echo \"<$$({program} $@)>\" # $$({program} $@)\n");
        let mut calls = Calls::of(program, &[&["a/c.o"]], steps(Operand::Last, &[step])).rewrite;
        calls.dialect = Dialect::Posix;
        let edit = Edit::of((b"Makefile", 4, None), 0, Ok(Rewrite::Shell(calls, Host::Recipe)));
        let edited = spliced(makefile.as_bytes(), &edit.splices(makefile.as_bytes()).unwrap());
        assert!(String::from_utf8_lossy(&edited).contains(&format!("\"<{function}>\"")), "{}", edited.escape_ascii());
        let directory = tempfile::tempdir().unwrap();
        let outputs = [makefile.as_bytes(), &edited].map(|text| {
            std::fs::write(directory.path().join("Makefile"), text).unwrap();
            std::process::Command::new("make").current_dir(directory.path()).output().unwrap()
        });
        assert_eq!(outputs[0], outputs[1]);
        assert!(outputs[0].status.success());
    }
}
