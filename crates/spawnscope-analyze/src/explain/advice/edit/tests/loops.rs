//! Executes edited loops whose calls become one call that is not the same program with more
//! operands, or code that depends on the script around it.

use super::Calls;
use super::executed::{BOTH, check, many};
use crate::explain::advice::edit::{Form, NewCode, Operand};
use crate::patterns::shells::Dialect;

/// A failing call of the loop does not end the script before the others, which `many` says.
#[test]
fn one_process_handles_pairs_of_names() {
    many(
        "mv",
        &["./plain", "./plain.old"],
        "for f in ./*; do\n  mv \"$f\" \"$f.old\"\ndone\nls\n",
        "printf '%s\\0%s\\0' \"$f\" \"$f.old\"\ndone | perl",
    );
    let directories =
        "mkdir ../e ../f\nwhile read -r a b; do\n  to=../e\n  mv -- \"$a${b:+ $b}\" \"$to/\"\ndone <../list\nls ../e\n";
    many(
        "mv",
        &["--", "plain", "../e/"],
        directories,
        "printf '%s\\0%s\\0' \"$a${b:+ $b}\" \"$to/\"\ndone <../list | perl",
    );
    let copies = "chmod 600 plain\nfor f in ./*[a-z]; do cp \"$f\" \"../${f##*/}.bak\"; done; ls -l .. | cut -c1-10\n";
    many("cp", &["./plain", "../plain.bak"], copies, "cp(@f)");
    let links = "for f in *; do ln -s \"$PWD/$f\" \"../-$f\"; done; ls ..\n";
    many("ln", &["-s", "/d/plain", "../-plain"], links, "symlink($f[0], $f[1])");
    let long = "x".repeat(100_000);
    let loop_of_moves = "for f in *; do mv \"$f\" \"$f.old\"; done";
    let of_long = Calls::of("mv", &[&[&long, &format!("{long}.old")]], Form::Many);
    of_long.edit(1, loop_of_moves).expect("a pipe has room for all");
    assert_eq!(of_long.limits(loop_of_moves).len(), 1, "as with short words");
    for other in [
        "for f in *; do mv -i \"$f\" \"$f.old\"; done",
        "for f in *; do mv \"$f\" \"$f.old\" || exit; done",
        "for f in *; do mv \"$f\" \"$f.old\"; echo \"$f\"; done",
        "for f in *; do mv \"$f\" \"$(echo \"$f\" | tr a b)\"; done",
    ] {
        let recorded: &[&str] = if other.contains("-i") { &["-i", "a", "a.old"] } else { &["a", "a.old"] };
        Calls::of("mv", &[recorded], Form::Many).edit(1, other).expect_err(other);
    }
}

#[test]
fn one_grep_decides_about_all_files() {
    let decided =
        |script: &str, recorded: &[&str], expected: &str| check(BOTH, "grep", recorded, Form::Many, script, expected);
    decided(
        "for f in [a-z]*; do\n  if ! grep -q plain \"$f\"; then\n    echo \"without: $f\"\n  fi\ndone\necho end\n",
        &["-q", "plain", "plain"],
        "|| grep_result=\n  if ! case $grep_result in '') grep -q plain \"$f\";; 0) false;; *) true;; esac; then",
    );
    decided(
        "ls | grep -v -e two -e lines | while read -r f; do grep -iqE 'OF (x|s)' \"./$f\" && echo \"$f\"; done\n",
        &["-iqE", "OF (x|s)", "./plain"],
        "' sh grep -hciE 'OF (x|s)') && printf",
    );
    decided(
        "for f in x.c plain; do grep of \"$f\" >/dev/null 2>&1 || echo \"$f\"; done\n",
        &["of", "plain"],
        "set -- x.c plain; answers=$(grep -hc of \"$@\" 2>/dev/null) || [ $? -eq 1 ] && [",
    );
    for other in [
        "for f in *; do [ -s \"$f\" ] && grep -q of \"$f\" && echo; done",
        "for f in *; do grep -q \"$f\" plain; touch \"$f\"; done",
        "for f in *; do if grep -q of \"$f\"; then touch \"$f.c\"; fi; done",
        "for f in *; do if cat \"$f\" | grep -q of; then echo; fi; done",
    ] {
        let recorded: &[&str] = if other.contains("cat") { &["-q", "of"] } else { &["-q", "of", "plain"] };
        let mut calls = Calls::of("grep", &[recorded], Form::Many);
        calls.rewrite.dialect = Dialect::Posix;
        calls.edit(1, other).expect_err(other);
    }
}

/// The loops have other commands, so that no grep can decide about all files at once.
#[test]
fn bash_reads_small_files_itself() {
    let reads = |script: &str, expected: &str| {
        check(&["bash"], "grep", &["-q", "of", "plain"], Form::Many, script, expected);
    };
    reads(
        "has() {\n  grep -q of \"$1\"\n}\nfor f in * none; do\n  if has \"./$f\"; then echo \"$f\"; touch \"../$f.c\"; fi\ndone; ls ..\n",
        "  { contents=; IFS= read -r -d '' contents <\"$1\" || :; [[ $contents == *\"of\"* ]]; }\n",
    );
    reads(
        "for f in [a-z]*; do [ -s \"$f\" ] && grep -q of \"$f\" && echo \"$f\" >\"../$f\"; done || :\n",
        "&& { contents=;",
    );
    let whole = "for f in two* *; do ! grep -qx two \"./$f\" || { echo \"$f\"; echo two >>\"./$f\"; }; done\n";
    check(&["bash"], "grep", &["-qx", "two", "./plain"], Form::Many, whole, "*$'\\n'\"two\"$'\\n'*");
}

#[test]
fn the_first_filter_of_several_prints_its_result() {
    let cut = Form::of_input(["#APP_".to_owned()]);
    let script = "for v in APP_A_B 'APP_ x' n; do\n  k=$(echo \"$v\" | sed -e 's/^APP_//' | tr A-Z a-z) && echo \"[$k]\"\ndone\n";
    check(BOTH, "sed", &["-e", "s/^APP_//"], cut.clone(), script, "k=$(printf '%s\\n' \"${v#APP_}\" | tr A-Z a-z) &&");
    let both = script.replace("'s/", "'s/x/y/' | sed -e 's/");
    Calls::of("sed", &[&["-e", "s/^APP_//"]], cut).edit(2, &both).expect_err("the text is not that of a variable");
}

#[test]
fn one_grep_lists_the_files_that_match() {
    let script = "for f in ./plain ./x.c; do grep -l of \"$f\"; done\n";
    many("grep", &["-l", "of", "./plain"], script, "grep -l of ./plain ./x.c");
}

#[test]
fn errors_about_a_missing_file_stay_redirected() {
    let read = Form::Statement("{y}=; { IFS= read -r {y} || :; } <{3}".to_owned());
    let script = "for f in plain none; do x=$(head -n 1 \"./$f\" 2>/dev/null) || :; echo \"$x\"; done\n";
    for shell in ["bash", "dash"] {
        check(
            &[shell],
            "head",
            &["-n", "1", "./plain"],
            read.clone(),
            script,
            "read -r x || :; } 2>/dev/null <\"./$f\"",
        );
    }
    let grep =
        "for f in plain none; do\n  if grep -q of \"./$f\" 2>/dev/null; then echo \"$f\"; touch ../c; fi\ndone\n";
    let expected = "contents 2>/dev/null <\"./$f\"";
    check(&["bash"], "grep", &["-q", "of", "./plain"], Form::Many, grep, expected);
    let missing = "for w in pl x; do grep -q \"$w\" ../none 2>/dev/null || echo \"$w\"; done\n";
    let expected = "contents 2>/dev/null <../none ||";
    check(&["bash"], "grep", &["-q", "pl", "../none"], Form::Many, missing, expected);
}

#[test]
fn a_number_of_wc_is_read_without_its_filter() {
    let lines = "for f in [a-z]*; do n=$(wc -l \"./$f\" | awk '{print $1}'); echo \"$n $f\"; done\n";
    many("wc", &["-l", "./plain"], lines, "$(for f in [a-z]*; do printf '%s\\0' \"./$f\"; done | xargs");
    let blanks = "for f in plain none x.c; do n=$(wc -c < \"$f\" | tr -d ' '); echo \"$n\"; done\n";
    many("wc", &["-c"], blanks, "read -r n _ <&3 && [ -n \"$n\" ] || n=$(wc -c < \"$f\" | tr -d ' ')");
    for other in ["for f in *; do n=$(wc -l \"$f\"); done", "for f in *; do n=$(wc -l \"$f\" | cut -c2-); done"] {
        Calls::of("wc", &[&["-l", "plain"]], Form::Many).edit(1, other).expect_err(other);
    }
}

#[test]
fn answers_stay_with_their_rounds() {
    // echo prints no line, or in sh two lines, for some of them.
    let options =
        "for a in a -n 'b\\nc' d; do\n  x=$(echo \"$a\" | tr a-z A-Z)\n  case $a in [ad]) echo \"$x\" ;; esac\ndone\n";
    many("tr", &["a-z", "A-Z"], options, "do printf '%s\\n' \"$a\"; done | tr a-z A-Z; echo .)");
    let glued = options.replace("echo \"$a\"", "echo -n \"$a\"");
    Calls::of("tr", &[&["a-z", "A-Z"]], Form::Many).edit(2, &glued).unwrap_err();
}

#[test]
fn a_loop_that_counts_asks_once() {
    let counting = "i=1\nwhile [ \"$i\" -le 5 ]; do\n  x=$(echo \"$i.7\" | rev)\n  echo \"$i: $x\"\n  i=$((i + 1))\ndone\necho $i\n";
    let expected = "IFS= read -r x <&3\n  echo \"$i: $x\"\n  i=$((i + 1))\ndone 3<<END\n$(while [ \"$i\" -le 5 ]; do printf '%s\\n' \"$i.7\"; i=$((i + 1)); done | rev";
    check(&["dash"], "rev", &[], Form::Many, counting, expected);
    for other in [
        "i=1; while [ $i -le 3 ]; do i=$((i + 1)); x=$(echo \"$i\" | rev); done",
        "i=1; while [ $i -le 3 ]; do x=$(echo \"$i\" | rev); i=$(date); done",
        "i=1; x=5; while [ $i -le $x ]; do x=$(echo \"$i\" | rev); i=$((i + 1)); done",
    ] {
        Calls::of("rev", &[&[]], Form::Many).edit(1, other).expect_err(other);
    }
}

#[test]
fn a_text_that_is_reversed_twice_is_an_expansion() {
    for (filter, expected) in [
        ("rev | cut -d. -f1 | rev", "x=${y##*.}"),
        ("rev | cut -f 1 -d / | rev", "x=${y##*/}"),
        ("rev | cut -d ' ' -f1 | rev", "x=${y##* }"),
        ("rev | cut -d- -f2- | rev", "x=${y%-*}"),
    ] {
        let script =
            format!("for y in a.b.c '' a-b-c . a/b 'x y'; do\n  x=$(echo \"$y\" | {filter})\n  echo \"$x\"\ndone\n");
        check(BOTH, "rev", &[], Form::Many, &script, expected);
    }
}

#[test]
fn what_a_pipeline_begins_with_is_asked_once() {
    let once = |program: &str, recorded: &[&str], script: &str, expected: &str| {
        check(BOTH, program, recorded, Form::Once, script, expected);
    };
    once(
        "uname",
        &["-s"],
        "for f in plain Linux; do\n  if uname -s | grep -q \"^$f\"; then echo \"$f\"; fi\ndone\n",
        "uname_s=$(uname -s)\nfor f in plain Linux; do\n  if printf \"${uname_s:+%s\\n}\" \"$uname_s\" | grep",
    );
    once("true", &[], "for f in 1 2; do true | wc -c; done\n", "=$(true)\nfor");
    let git = Calls::of("git", &[&["diff", "--name-only", "HEAD~1"]], Form::Once);
    let script = "for f in 1 2; do git diff --name-only HEAD~1 | grep -q $f && x; done\n";
    assert!(git.edit(1, script).unwrap_err().contains("may change the answer"));
    git.edit(1, &script.replace("&& x", "&& echo $f")).unwrap();
}

#[test]
fn a_call_whose_failure_is_handled_is_not_asked_before() {
    let asked = Calls::of("git", &[&["config", "--get", "a.b"]], Form::Once);
    let in_function = |call: &str| format!("f() {{ {call}; }}\nfor i in 1 2; do x=$(f); echo $x; done\n");
    asked.edit(1, &in_function("git config --get a.b")).unwrap();
    asked.edit(1, "for i in 1 2; do x=$(git config --get a.b); echo $x; done\n").unwrap();
    asked.edit(1, "for i in 1 2; do echo $(git config --get a.b) || echo $i; done\n").unwrap();
    for script in [
        &in_function("git config --get a.b || echo 5")[..],
        &in_function("if git config --get a.b; then :; fi"),
        &in_function("git config --get a.b").replace("x=$(f)", "x=$(f) || x=5"),
        &in_function("git config --get a.b").replace("x=$(f);", "if x=$(f); then echo; fi;"),
        "for i in 1 2; do x=$(git config --get a.b) || x=5; echo $x; done\n",
        "for i in 1 2; do if ! x=$(git config --get a.b); then x=5; fi; echo $x; done\n",
    ] {
        let refusal = asked.edit(1, script).expect_err(script);
        assert!(refusal.contains("handles a failure"), "{script}: {refusal}");
    }
}

/// A prompt, a trap or a script that sources the file may call the function in another directory.
#[test]
fn a_function_that_others_call_asks_each_time() {
    let asked = Calls::of("git", &[&["rev-parse", "--show-toplevel"]], Form::Once);
    let script = |calls: &str| format!("f() {{\n  x=$(git rev-parse --show-toplevel)\n}}\n{calls}");
    asked.edit(2, &script("f; f\n")).unwrap();
    for others in ["", "PROMPT_COMMAND=f\n", "f; trap f EXIT\n"] {
        asked.edit(2, &script(others)).expect_err(others);
    }
}

#[test]
fn a_member_of_a_list_is_found_by_the_shell() {
    let member = "MYPATH=/bin:/usr/bin\nfor d in /bin /x /usr /usr/bin; do\n  if ! echo \"$MYPATH\" | grep -qE \"(^|:)$d($|:)\"; then\n    MYPATH=$MYPATH:$d\n  fi\ndone\necho \"$MYPATH\"\n";
    let recorded: &[&str] = &["-qE", "(^|:)/usr($|:)"];
    check(&["bash"], "grep", recorded, Form::Many, member, "if ! [[ :\"$MYPATH\": == *:\"$d\":* ]]; then");
    let posix = "if ! case :\"$MYPATH\": in *:\"$d\":*) true;; *) false;; esac; then";
    check(&["dash"], "grep", recorded, Form::Many, member, posix);
    let start = "for f in *; do echo \"$f\" | grep -q \"^$1\" && echo yes; done\n";
    check(&["bash"], "grep", &["-q", "^plain"], Form::Many, start, "[[ \"$f\" == \"$1\"* ]] && echo yes");
    for other in [
        "x=$1; for f in 1 2; do echo \"$x\" | grep -q \"^$f\"; done",
        "for f in 1 2; do echo \"$f\" | grep -q \"^$1*\"; done",
        "for f in 1 2; do echo \"$f\" | grep -qi \"^$1\"; done",
    ] {
        Calls::of("grep", &[&["-q", "^1"]], Form::Many).edit(1, other).expect_err(other);
    }
}

#[test]
fn one_bc_computes_all_quotients() {
    let script =
        "for i in 3 0 7; do\n  p=$(echo \"scale=1; $i * 100 / $i\" | bc 2>/dev/null)\n  echo \"$i: $p\"\ndone\n";
    Calls::of("bc", &[&[]], Form::Many).edit(2, script).expect_err("errors are dropped");
    let shown = script.replace(" 2>/dev/null", "");
    many("bc", &[], &shown, "echo 'print \"#\\n\"'; done | bc | awk '$0 == \"#\"");
    let rounded = shown.replace("| bc", "| bc | cut -d. -f1");
    Calls::of("bc", &[&[]], Form::Many).edit(2, &rounded).expect_err("cut would read the marks");
    let based = shown.replace("scale=1", "ibase=8");
    Calls::of("bc", &[&[]], Form::Many).edit(2, &based).expect_err("the base would stay");
}

#[test]
fn each_round_asks_for_itself_if_one_fails() {
    let size: &[&str] = &["-c", "%s", "--", "plain"];
    let read = "&& [ -n \"$s\" ] || s=$(stat -c %s -- \"$f\")";
    let words = "for f in x.c none plain; do s=$(stat -c %s -- \"$f\"); echo \"$f: $s\"; done\necho end\n";
    many("stat", size, words, read);
    many("stat", size, &words.replace("x.c none", "\"$@\" none ''"), read);
    many("stat", size, &words.replace("for f in x.c none plain;", "nothing=; for f in $nothing;"), read);
    let lines =
        "printf '%s\\n' plain none -leading | while read -r f; do s=$(stat -c %s -- \"$f\"); echo \"$f: $s\"; done\n";
    many(
        "stat",
        size,
        lines,
        "sh -c 'answers=$(\"$@\" 2>/dev/null) && [ $(printf \"%s\\n\" \"$answers\" | wc -l) -eq $(($# - 4)) ]",
    );
    many(
        "stat",
        size,
        &lines.replace("s=$(stat -c %s -- \"$f\"); echo \"$f: $s\"", "echo \"$f: $(stat -c %s -- \"$f\")\""),
        "${stat_result:-$(stat -c %s -- \"$f\")}",
    );
    let several = "for f in x.c two* plain; do s=$(stat -c %n -- \"$f\"); echo \"$f: $s\"; done\n";
    many("stat", &["-c", "%n", "--", "plain"], several, "-eq $# ]");
    let counts = "for f in plain none x.c; do n=$(wc -l <\"$f\") || n=none; echo \"$n\"; done\n";
    many("wc", &["-l"], counts, "n=${wc_result:-$(wc -l <\"$f\")} || n=none");
    let searched = "for f in plain none x.c; do if grep -q of \"$f\"; then echo \"$f\"; fi; done\n";
    check(
        BOTH,
        "grep",
        &["-q", "of", "plain"],
        Form::Many,
        searched,
        "case $grep_result in '') grep -q of \"$f\";; 0)",
    );
    let unmatched = "for f in plain x.c; do grep -q none \"./$f\" || echo \"$f\"; done\n";
    check(BOTH, "grep", &["-q", "none", "./plain"], Form::Many, unmatched, "|| [ $? -eq 1 ] && [");
}

#[test]
fn a_variable_in_a_script_is_also_in_the_expansion() {
    let form = |steps: &[&str]| {
        let steps = steps.iter().map(|step| (*step).to_owned()).collect();
        Form::Steps { operand: Operand::Input, steps }
    };
    let sed = "p=pl s=.c; for y in plain pl.c '*l'; do x=$(echo \"$y\" | sed \"s|^$p||; s|c$||\"); echo \"$x\"; done\n";
    check(BOTH, "sed", &["s|^pl||; s|c$||"], form(&["#pl", "%c"]), sed, "x=${y#\"$p\"}; x=${x%c}");
    let suffix = Form::Steps { operand: Operand::First, steps: vec!["##*/".to_owned(), "%.c".to_owned()] };
    let names = "e=c; for f in ./*; do b=$(basename \"$f\" \".$e\"); echo \"$b\"; done\n";
    check(BOTH, "basename", &["./plain", ".c"], suffix, names, "b=${f##*/}; b=${b%.\"$e\"}");
    let suffix = Form::Steps { operand: Operand::First, steps: vec!["##*/".to_owned(), "%{2}".to_owned()] };
    let names = "for f in ./plain.c ./x.h; do\n  e=${f##*.}\n  b=$(basename \"$f\" \".$e\")\n  echo \"$b\"\ndone\n";
    check(BOTH, "basename", &["./plain.c", ".c"], suffix, names, "b=${f##*/}; b=${b%\".$e\"}");
    for (recorded, script) in [
        ("s|^p.||", "x=$(echo \"$y\" | sed \"s|^$p||\")"),
        ("s|^||", "x=$(echo \"$y\" | sed \"s|^$p||\")"),
        ("s|^pl||", "x=$(echo \"$y\" | sed \"s|^$p$q||\")"),
        ("s|^pl||", "x=$(echo \"$y\" | sed \"s|^$(p)||\")"),
    ] {
        Calls::of("sed", &[&[recorded]], form(&["#pl"])).edit(1, script).expect_err(script);
    }
    // Placeholders of templates have the names of these variables.
    for (dialect, test) in [("bash", "[[ {x} == *'zz'* ]]"), ("dash", "case {x} in *'zz'*) true;; *) false;; esac")] {
        for variable in ["2", "x", "y"] {
            let set = if variable == "2" { "" } else { "  local x=$2 y=$2\n" };
            let call = format!("echo \"$1\" | grep -q \"${variable}\"");
            let script = format!("has() {{\n{set}  {call}\n}}\nhas 'x zz' zz && echo yes; has '' zz || echo no\n");
            let expected = format!("*\"${variable}\"*");
            check(&[dialect], "grep", &["-q", "zz"], Form::Condition(test.to_owned()), &script, &expected);
        }
    }
    let many = "echo \"$1\" | grep -q \"${10}\"";
    let test = Form::Condition("[[ {x} == *'a'* ]]".to_owned());
    Calls::of("grep", &[&["-q", "a"]], test).edit(1, many).expect_err("a parameter with two digits");
    let any = form(&["/pl/x"]);
    Calls::of("sed", &[&["s|pl|x|"]], any).edit(1, "x=$(echo \"$y\" | sed \"s|$p|x|\")").expect_err("not at an end");
}

#[test]
fn a_shell_tests_for_a_directory_first() {
    let make = |script: &str, expected: &str| check(BOTH, "mkdir", &["-p", "../e/1"], Form::Tested, script, expected);
    make("for f in 1 2 1 'a b'; do mkdir -p \"../e/$f\"; echo $?; done; ls ../e\n", "[ -d \"../e/$f\" ] || mkdir -p");
    make(
        "for f in 1 1; do mkdir -p ../e/$f || exit 1; done; ls ../e\n",
        "[ -d \"../e/$f\" ] || mkdir -p ../e/$f || exit",
    );
    make("for f in 1 1; do mkdir -p ../e/$f && echo $f; done; ls ../e\n", "do [ -d");
    make(
        "for f in 1 1; do [ $f ] && mkdir -p ../e/$f; done; ls ../e\n",
        "&& { [ -d \"../e/$f\" ] || mkdir -p ../e/$f; };",
    );
    make("for f in 1 1; do ! mkdir -p ../e/$f || echo $f; done; ls ../e\n", "! { [ -d \"../e/$f\" ] || mkdir -p");
    for other in ["mkdir -p ../e/1 ../f", "mkdir -p ../e/$(x)", "mkdir -m 1 ../e/1"] {
        Calls::of("mkdir", &[&["-p", "../e/1"]], Form::Tested).edit(1, other).expect_err(other);
    }
}

#[test]
fn a_text_of_a_function_has_one_line_in_all_calls() {
    let first = Form::Steps { operand: Operand::Input, steps: vec!["%% *".to_owned()] };
    let cut = |script: &str| {
        let mut calls = Calls::of("cut", &[&["-d ", "-f1"]], first.clone());
        calls.rewrite.code.needs_one_line = true;
        calls.edit(1, script)
    };
    let function =
        |calls: &str| format!("f() {{ local a=$1; x=$(echo \"$a\" | cut -d' ' -f1); echo \"$x\"; }}\n{calls}");
    let known = [
        "f 'a b'; f \"$(wc -l <x)\"",
        "for g in *; do f \"$g\"; done",
        "s=$(git log -1 --format=%s \"$c\"); f \"$s\"",
        "s=$(git log -1 --pretty=format:%s \"$c\"); f \"$s\"",
        "f \"$(x | sort | tail -n 1)\"; f \"$(head -n1 \"$y\")\"",
        "v=$(jq -r \".a[$i].b // \\\"none\\\"\" \"$json\"); f \"$v\"",
        "while IFS= read -r line; do f \"${line%%=*}\"; f \"${line#*=}\"; done",
        "v=$(cat x | tr -d '\\n'); f \"$v\"",
        "v=$(x | tr '\\n' ,); f \"$v\"; w=$(x | tr -dc '0-9'); f \"$w\"",
    ];
    known.iter().for_each(|calls| assert!(cut(&function(calls)).is_ok(), "{calls}"));
    let unknown = [
        "f \"$(x)\"",
        "while IFS= read -r line; do f \"${line%%=*}\"; : \"${line:=$(x)}\"; done",
        "v=$(x | tr -d ' '); f \"$v\"",
        "v=$(x | tr -dc '0-9\\n'); f \"$v\"",
        "f \"$@\"",
        "f 'a\nb'",
        "run f a",
        "s=$(git log --format=%s \"$c\"); f \"$s\"",
        "f \"$(x | head -n $(wc -l))\"",
        "f \"$(head -n1 $y)\"",
        "f \"$(jq -r .a[] \"$json\")\"",
        "f \"$(jq -r .a $json)\"",
    ];
    unknown.iter().for_each(|calls| assert!(cut(&function(calls)).is_err(), "{calls}"));
}

#[test]
fn an_edit_has_only_the_limits_of_its_own_code() {
    let begin = |program: &str, arguments: &[&str], form, script: &str| {
        let limits = Calls::of(program, &[arguments], form).limits(script).into_iter();
        limits.map(|limit| limit.split_whitespace().take(3).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let together = "if one fails,";
    assert_eq!(begin("rm", &["a"], Form::Many, "for f in a b; do rm \"$f\"; done"), [together]);
    let lines = "while read -r f; do rm \"$f\"; done <list";
    assert_eq!(begin("rm", &["a"], Form::Many, lines), ["xargs keeps what", together]);
    let asked = "for f in a b; do x=$(wc -l <\"$f\"); echo \"$x\"; done";
    assert_eq!(begin("wc", &["-l"], Form::Many, asked), ["the answers are"]);
    let fed = "for f in a b; do y=$(echo \"$f\" | rev | cut -d. -f1 | rev); done";
    assert_eq!(begin("rev", &[], Form::Many, fed), [""; 0]);
    let first = || Form::of_input(["%%.*".to_owned()]);
    assert_eq!(
        begin("cut", &["-d.", "-f1"], first(), "y=$(echo $x | cut -d. -f1)"),
        ["`echo $x` without", "unlike `$(echo)`, the"]
    );
    assert_eq!(begin("cut", &["-d.", "-f1"], first(), "y=$(echo \"$x\" | cut -d. -f1)"), ["unlike `$(echo)`, the"]);
    assert_eq!(begin("cut", &["-d.", "-f1"], first(), "y=$(sum \"$x\" | cut -d. -f1)"), [""; 0]);
    let of_line = NewCode { needs_one_line: true, ..first().into() };
    let mut of_json = Calls::of("cut", &[&["-d.", "-f1"]], first());
    of_json.rewrite.code = of_line;
    let limits = of_json.limits("x=$(jq -r .a f); y=$(echo \"$x\" | cut -d. -f1)");
    assert!(limits.iter().any(|limit| limit.starts_with("only for text of one line")), "{limits:?}");
    let searched = "echo \"$x\" | grep -q \"$y\" && echo found";
    assert_eq!(begin("grep", &["-q", "a"], Form::Many, searched), ["words are compared"]);
}

#[test]
fn a_default_of_jq_is_a_value() {
    let defaults = "echo '[{\"a\": \"x y\"}]' >x.c\nfor i in 0 1 x; do\n  a=$(jq -r \".[$i].a\" x.c)\n  b=$(jq -r \".[$i].b // \\\"x 1\\\"\" x.c)\n  echo \"$a-$b\"\ndone\necho end\n";
    let expected = "b=\\\\(.[$i].b // \\\"x 1\\\")\\\"\" x.c)";
    check(BOTH, "jq", &["-r", ".[0].a", "x.c"], Form::Together, defaults, expected);
}
