//! Tests of edits of shell scripts: the lines before and after here, and edited programs that are
//! executed.

pub(in crate::explain::advice) mod executed;
mod loops;
mod makefiles;
mod programs;
mod stages;

use std::collections::BTreeSet;

use super::{Edit, Form, Host, Operand, Rewrite, ShellRewrite, spliced};
use crate::patterns::shells::Dialect;

/// Recorded calls of a program, and what replaces them.
pub(in crate::explain::advice) struct Calls {
    pub(super) rewrite: ShellRewrite,
}

impl Calls {
    pub(in crate::explain::advice) fn of(program: &str, calls: &[&[&str]], form: Form) -> Calls {
        let words = |call: &&[&str]| call.iter().map(|word| word.as_bytes().to_vec()).collect();
        let calls: BTreeSet<Vec<Vec<u8>>> = calls.iter().map(words).collect();
        let program = program.as_bytes().to_vec();
        let (dialect, has_failures) = (Dialect::Bash, false);
        Calls {
            rewrite: ShellRewrite {
                program,
                calls,
                code: form.into(),
                dialect,
                has_failures,
                has_errors: false,
                others: BTreeSet::new(),
                is_distinct: true,
                failed: BTreeSet::new(),
            },
        }
    }

    fn one_line(mut self) -> Calls {
        self.rewrite.code.needs_one_line = true;
        self
    }

    fn failing(mut self) -> Calls {
        (self.rewrite.has_failures, self.rewrite.has_errors) = (true, true);
        self
    }

    pub(in crate::explain::advice) fn edit(&self, line: u32, script: &str) -> Result<String, String> {
        let rewrite = Ok(Rewrite::Shell(self.rewrite.clone(), Host::Script));
        let edit = Edit::of((b"a.sh", line, None), 0, rewrite);
        let splices = edit.splices(script.as_bytes()).map_err(|refusal| refusal.to_string())?;
        Ok(String::from_utf8(spliced(script.as_bytes(), &splices)).unwrap())
    }

    fn limits(&self, script: &str) -> Vec<&'static str> {
        let rewrite = Ok(Rewrite::Shell(self.rewrite.clone(), Host::Script));
        let edit = Edit::of((b"a.sh", 1, None), 0, rewrite);
        edit.splices(script.as_bytes()).unwrap().into_iter().flat_map(|splice| splice.limits).collect()
    }

    fn check(&self, cases: &[(&str, &str)]) {
        for (script, expected) in cases {
            assert_eq!(self.edit(1, script).as_deref(), Ok(*expected), "{script}");
        }
    }

    fn refuses(&self, cases: &[(&str, &str)]) {
        for (script, reason) in cases {
            let refusal = self.edit(1, script).expect_err(script);
            assert!(refusal.contains(reason), "{script}: {refusal}");
        }
    }
}

fn steps(operand: Operand, steps: &[&str]) -> Form {
    Form::Steps { operand, steps: steps.iter().map(|step| (*step).to_owned()).collect() }
}

fn word(template: &str) -> Form {
    Form::Word(template.to_owned())
}

#[test]
fn the_contents_of_a_file_are_not_printed() {
    let cat = Calls::of("cat", &[&["a"]], Form::Captured("$(<{1})".to_owned()));
    cat.check(&[("x=$(cat \"$f\")", "x=$(<\"$f\")"), ("x=$(cat \"$f\" 2>/dev/null)", "{ x=$(<\"$f\"); } 2>/dev/null")]);
    cat.refuses(&[
        ("echo $(cat \"$f\" 2>/dev/null)", "the errors of cat are redirected"),
        ("cat \"$f\" | cksum", "does not call cat in $( )"),
        ("x=$(cat \"$f\" | tr a b)", "the input or output of cat is redirected"),
    ]);
}

#[test]
fn an_expansion_replaces_a_substitution() {
    let basename = Calls::of("basename", &[&["a/b"], &["c/d"]], steps(Operand::Last, &["##*/"]));
    basename.check(&[
        ("  dir=$(basename \"$path\")  # here", "  dir=${path##*/}  # here"),
        ("dir=$(basename $path)", "dir=${path##*/}"),
        ("d=`/usr/bin/basename \"$p\"`", "d=${p##*/}"),
        ("mv a \"$(basename \"${1}\")/b\" && x", "mv a \"${1##*/}/b\" && x"),
        ("a=$(basename \"$x\") b=$(basename \"$y\")", "a=${x##*/} b=${y##*/}"),
        ("if [ \"$(basename \"$p\")\" = a ]; then x; fi", "if [ \"${p##*/}\" = a ]; then x; fi"),
        ("d=$(basename \"$r/$f\")", "d=\"$r/$f\"; d=${d##*/}"),
        ("x && d=$(basename \"$r/$f\")", "x && { d=\"$r/$f\"; d=${d##*/}; }"),
        (
            "mv a $(basename \"$r/$f\")",
            "basename_result=\"$r/$f\"; basename_result=${basename_result##*/}\nmv a $basename_result",
        ),
        ("f() { local d=$(basename \"$1\"); }", "f() { local d=${1##*/}; }"),
        ("basename \"$p\"", "printf '%s\\n' \"${p##*/}\""),
        ("dir=$(x; basename \"$p\")", "dir=$(x; printf '%s\\n' \"${p##*/}\")"),
        ("basename \"$p\" >f", "printf '%s\\n' \"${p##*/}\" >f"),
    ]);
    basename.refuses(&[
        ("dir=$(dirname \"$path\")", "does not call basename"),
        ("dir=$(basename -z \"$path\")", "other arguments"),
        ("dir=$(basename \"$path\" <f)", "redirected"),
        ("dir=$(A=b basename \"$path\")", "only for this call"),
        ("eval 'dir=$(basename \"$path\")'", "does not call basename"),
        ("echo '$(basename \"$path\")'", "does not call basename"),
        ("d=$(basename */*)", "several words"),
        ("d=$(basename \"$r/$f\" | x)", "redirected"),
        ("for x in; do", "syntax"),
    ]);
    basename.edit(2, "d=$(basename \"$path\")\n").unwrap_err();
    basename.edit(0, "d=$(basename \"$path\")\n").unwrap_err();
    let failing = Calls::of("basename", &[&["a/b"]], steps(Operand::Last, &["##*/"])).failing();
    failing.refuses(&[("d=$(basename \"$p\")", "exit status")]);
}

#[test]
fn several_expansions_need_a_variable() {
    let basename = Calls::of("basename", &[&["a/b.c", ".c"]], steps(Operand::First, &["##*/", "%.c"]));
    basename.check(&[
        ("b=$(basename \"$p\" .c)", "b=${p##*/}; b=${b%.c}"),
        ("local b=$(basename \"$p\" .c)", "local b; b=${p##*/}; b=${b%.c}"),
        ("export b=$(basename \"$p\" .c)", "b=${p##*/}; b=${b%.c}; export b"),
        (
            "cc -o \"$(basename \"$p\" .c).o\"",
            "basename_of_p=${p##*/}; basename_of_p=${basename_of_p%.c}\ncc -o \"$basename_of_p.o\"",
        ),
        ("cc $(basename $p .c)_x", "basename_of_p=${p##*/}; basename_of_p=${basename_of_p%.c}\ncc ${basename_of_p}_x"),
        (
            "while x; do cc $(basename $p .c); done",
            "while x; do basename_of_p=${p##*/}; basename_of_p=${basename_of_p%.c}; cc $basename_of_p; done",
        ),
    ]);
    basename.check(&[("basename $d/$p .c", "basename_result=$d/$p; basename_result=${basename_result##*/}; basename_result=${basename_result%.c}; printf '%s\\n' \"$basename_result\"")]);
    let two = "cc \"$(basename \"$p\" .c)\" \"$(basename \"$q\" .c)\"";
    let edited = basename.edit(1, two).unwrap();
    assert!(edited.ends_with("cc \"$basename_of_p\" \"$basename_of_q_2\""), "{edited}");
    basename.refuses(&[
        ("x | cc $(basename $p .c)", "beginning of a statement"),
        ("x && cc $(basename $p .c)", "beginning of a statement"),
        ("local p=$(basename \"$p\" .c)", "declared"),
        ("basename \"$p\" .c || x", "several"),
    ]);
}

#[test]
fn a_filter_is_replaced_if_its_text_has_one_line() {
    let cut = Calls::of("cut", &[&["-d:", "-f2"]], steps(Operand::Input, &["#*:", "%%:*"])).one_line();
    for set in [
        "while read -r x; do",
        "for x in a *; do",
        "for z in $(y); do x=$z-$((1 + 2))",
        "for z in a; do x=$(basename $z)",
    ] {
        for feeder in ["printf '%s\\n' \"$x\" | cut -d: -f2", "cut -d: -f2 <<< \"$x\"", "echo $x | cut -d ':' -f 2"] {
            let script = format!("{set}\n  y=$({feeder})\ndone");
            let expected = format!("{set}\n  y=${{x#*:}}; y=${{y%%:*}}\ndone");
            match feeder.contains("-f 2") {
                true => assert!(cut.edit(2, &script).unwrap_err().contains("other arguments")),
                false => assert_eq!(cut.edit(2, &script).unwrap(), expected, "{script}"),
            }
        }
    }
    for set in ["x=$(cat f)", "x=$1", "read -d '' x", "x='a\nb'", "x=$q", "", "eval x=y", "mapfile x"] {
        let script = format!("y=$(echo \"$x\" | cut -d: -f2)\n{set}\n");
        assert!(cut.edit(1, &script).unwrap_err().contains("several lines"), "{script}");
    }
}

#[test]
fn the_last_value_before_a_filter_is_the_one_that_counts() {
    let cut = Calls::of("cut", &[&["-d:", "-f2"]], steps(Operand::Input, &["#*:", "%%:*"])).one_line();
    let edit = |script: &str| cut.edit(1, &script.replace('@', "y=$(echo \"$x\" | cut -d: -f2)"));
    for known in [
        "x=$(cat f); . ./env; x=a:b; @",
        "x=$(cat f); f() { x=a:b; [ -n \"$x\" ] && @; }",
        "eval a; for z in *; do x=${z##*/}; if a; then @; fi; done",
    ] {
        assert!(edit(known).is_ok(), "{known}");
    }
    for unknown in [
        "x=a; . ./env; @",
        "x=a; x=$(cat f) && @",
        "x=a; f() { x=$(cat f); }; f; @",
        "if a; then x=b; else @; fi; x=$(cat f)",
        "case $z in a) x=$(cat f);; b) x=b;; c) @;; esac",
        "x=a; f() { @; }; x=$(cat f); f",
        "x=a; for z in 1 2; do @; x=$(cat f); done",
        "x=$(cat f); ( x=a ); @",
        "x=$(cat f); x=a & @",
        "for x in \"$z\"; do @; done",
    ] {
        assert!(edit(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn templates_get_the_words_of_the_call() {
    let expr = Calls::of("expr", &[&["1", "+", "2"], &["3", "+", "2"]], word("$(({#1} + {#3}))"));
    expr.check(&[
        ("i=$(expr $i + 2)", "i=$((i + 2))"),
        ("i=`expr \"$i\" \"+\" \"$1\"`", "i=$((i + $1))"),
        ("echo \"$(expr $i + 2)\"", "echo \"$((i + 2))\""),
        ("expr $i + 2", "printf '%s\\n' \"$((i + 2))\""),
    ]);
    expr.refuses(&[("i=$(expr ${x%a} + 2)", "neither")]);
    let failing = Calls::of("expr", &[&["1", "-", "1"]], word("$(({#1} - {#3}))")).failing();
    failing.check(&[("i=$(expr $i - 1)", "i=$((i - 1))"), ("echo $(expr $i - 1)", "echo $((i - 1))")]);
    failing.refuses(&[("set -e; i=$(expr $i - 1)", "exit status"), ("i=$(expr $i - 1) && x", "exit status")]);
    let date = Calls::of("date", &[&["+%F"]], Form::Statement("printf -v {y} '%(%F)T' -1".to_owned()));
    date.check(&[
        ("d=$(date +%F)", "printf -v d '%(%F)T' -1"),
        ("local d=$(date +%F)", "local d; printf -v d '%(%F)T' -1"),
        ("echo \"$(date +%F) x\"", "printf -v date_result '%(%F)T' -1\necho \"$date_result x\""),
    ]);
    let grep = Calls::of("grep", &[&["-q", "a"]], Form::Condition("[[ {x} == *'a'* ]]".to_owned()));
    grep.check(&[
        ("if echo \"$x\" | grep -q a; then y; fi", "if [[ \"$x\" == *'a'* ]]; then y; fi"),
        ("! grep -q a <<<\"$x\" || y", "! [[ \"$x\" == *'a'* ]] || y"),
    ]);
    grep.refuses(&[("grep -q a f", "other arguments"), ("cat f | grep -q a", "not the text of a variable")]);
    let printf = Calls::of("printf", &[&["x"]], Form::Builtin("printf".to_owned()));
    printf.check(&[("/usr/bin/printf x | y", "printf x | y")]);
}

#[test]
fn a_question_is_asked_before_the_loop() {
    let git = Calls::of("git", &[&["rev-parse", "HEAD"]], Form::Once);
    let cases = [
        (
            2,
            "for f in *; do\n  echo \"$f $(git rev-parse HEAD)\"\ndone",
            "git_rev_parse_HEAD=$(git rev-parse HEAD)\nfor f in *; do\n  echo \"$f $git_rev_parse_HEAD\"\ndone",
        ),
        (
            3,
            "x\nls | while read -r f; do\n  h=$(git rev-parse HEAD 2>/dev/null || echo no)\ndone",
            "x\ngit_rev_parse_HEAD_2_dev_null_echo_no=$(git rev-parse HEAD 2>/dev/null || echo no)\nls | while read -r f; do\n  h=$git_rev_parse_HEAD_2_dev_null_echo_no\ndone",
        ),
        (
            2,
            "for a in 1 2; do for b in 1 2; do\n  x `git rev-parse HEAD`s\ndone; done",
            "git_rev_parse_HEAD=`git rev-parse HEAD`\nfor a in 1 2; do for b in 1 2; do\n  x ${git_rev_parse_HEAD}s\ndone; done",
        ),
    ];
    for (line, script, expected) in cases {
        assert_eq!(git.edit(line, script).as_deref(), Ok(expected), "{script}");
    }
    git.refuses(&[
        ("h=$(git rev-parse HEAD)", "not in a loop"),
        ("f() { h=$(git rev-parse HEAD); }; cd x; for x in 1 2; do f; done", "not in a loop"),
        ("for f in *; do cd $f; h=$(git rev-parse HEAD); done", "directory"),
        ("for f in *; do git rev-parse HEAD; done", "$( )"),
        ("for f in *; do h=$(git rev-parse HEAD; touch x); done", "more than ask"),
        ("for f in *; do h=$(git rev-parse HEAD >f); done", "more than ask"),
    ]);
    git.check(&[(
        "f() { h=$(git rev-parse HEAD); }; f",
        "git_rev_parse_HEAD=$(git rev-parse HEAD)\nf() { h=$git_rev_parse_HEAD; }; f",
    )]);
    let uname = Calls::of("uname", &[&["-s"]], Form::Once);
    uname.check(&[("os() { uname -s; }; cd x", "uname_s=$(uname -s)\nos() { printf '%s\\n' \"$uname_s\"; }; cd x")]);
    let of_function = "os() {\n  uname -s\n}\necho $(os)";
    assert_eq!(
        uname.edit(4, of_function).unwrap(),
        "uname_s=$(uname -s)\nos() {\n  printf '%s\\n' \"$uname_s\"\n}\necho $(os)"
    );
    let of_variable = Calls::of("git", &[&["log", "x"]], Form::Once);
    of_variable.check(&[(
        "for f in *; do h=$(git log \"$r\"); done",
        "git_log_r=$(git log \"$r\")\nfor f in *; do h=$git_log_r; done",
    )]);
    of_variable.refuses(&[
        ("for f in *; do h=$(git log \"$f\"); done", "changes"),
        ("for f in *; do r=$f; h=$(git log \"$r\"); done", "changes"),
        ("for f in *; do eval \"$f\"; h=$(git log \"$r\"); done", "changes"),
        ("g() { r=1; }; for f in *; do g; h=$(git log \"$r\"); done", "changes"),
        ("for f in *; do read -r r; h=$(git log \"$r\"); done", "changes"),
        ("for f in *; do ((r++)); h=$(git log \"$r\"); done", "changes"),
        ("for f in *; do h=$(git log \"$RANDOM\"); done", "changes"),
    ]);
}

#[test]
fn one_call_replaces_a_loop() {
    let chmod = Calls::of("chmod", &[&["644", "a"], &["644", "b c"]], Form::Many);
    chmod.check(&[
        ("for f in *.c; do chmod 644 \"$f\"; done", "chmod 644 *.c"),
        ("for f in $list; do chmod 644 \"$f\"; done", "(set -- $list; [ $# -eq 0 ] || chmod 644 \"$@\")"),
        ("for f in \"${l[@]}\"; do chmod 644 \"$f\"; done", "(set -- \"${l[@]}\"; [ $# -eq 0 ] || chmod 644 \"$@\")"),
        (
            "find . | while IFS= read -r f; do chmod 644 \"$f\" 2>/dev/null; done",
            "find . | xargs -r -d '\\n' chmod 644 2>/dev/null",
        ),
        (
            "for f in *; do chmod 644 $f; done; ls | while read f; do x $f; done",
            "chmod 644 *; ls | while read f; do x $f; done",
        ),
        ("while read f; do chmod 644 $f; done <list", "xargs -r -d '\\n' chmod 644 <list"),
        (
            "shopt -s nullglob; for f in *; do chmod 644 \"$f\"; done",
            "shopt -s nullglob; (set -- *; [ $# -eq 0 ] || chmod 644 \"$@\")",
        ),
    ]);
    let loop_of_lines = "for f in *.c x; do\n  chmod 644 \"$f\" # why\ndone >log";
    assert_eq!(chmod.edit(2, loop_of_lines).as_deref(), Ok("chmod 644 *.c x >log"));
    chmod.refuses(&[
        ("for f in *; do chmod 644 \"$f\"; x; done", "other commands"),
        ("for f in *; do chmod 644 \"$f\" || x; done", "joined"),
        ("for f in *; do chmod 644 \"x$f\"; done", "other arguments"),
        ("for f in *; do chmod 644 \"$f\" >\"$f.log\"; done", "input or output"),
        ("while x; do chmod 644 \"$f\"; done", "no word of the call changes"),
        ("for f in *; do chmod 644 \"$f\" || break; done", "joined"),
        ("while read -r f; do chmod 644 \"$f\"; x; done", "other commands"),
        ("for f in *; do if x; then chmod 644 \"$f\"; fi; done", "other commands"),
        ("for f in *; do chmod \"$m\" \"$f\" \"$f\"; done", "other arguments"),
    ]);
    let cp = Calls::of("cp", &[&["a", "d/"], &["b", "d/"]], Form::Many);
    cp.check(&[("for f in *; do cp \"$f\" d/; done", "cp * d/")]);
    cp.refuses(&[("for f in *; do cp \"$f\" d; done", "other arguments")]);
}

#[test]
fn the_value_of_an_option_is_not_one_of_the_inputs() {
    let touch = Calls::of("touch", &[&["-r", "a", "b"], &["-r", "c", "d"]], Form::Many);
    let changes = "the value of an option changes";
    touch.refuses(&[
        ("for f in *; do g=x/$f; touch -r \"$f\" \"$g\"; n=1; done", changes),
        ("for f in *; do touch -r \"$f\" d; touch -r \"$f\" b; done", changes),
        ("touch -r a b; touch -r c d", "nor beside others like it"),
    ]);
    let mkdir = Calls::of("mkdir", &[&["-m", "700", "a"], &["-m", "700", "b"]], Form::Many);
    mkdir.check(&[("mkdir -m 700 a; mkdir -m 700 b", "mkdir -m 700 a b")]);
    let constant = Calls::of("touch", &[&["-r", "a", "b"]], Form::Many);
    constant.check(&[("for f in *; do touch -r \"$x\" \"$f\"; done", "touch -r \"$x\" *")]);
}

#[test]
fn several_questions_become_one() {
    let jq = Calls::of("jq", &[&["-r", ".a", "f"]], Form::Together);
    jq.check(&[(
        "for f in x; do a=$(jq -r .a \"$f\"); b=$(jq -r '.b | length' \"$f\"); done\n",
        "for f in x; do a= b= jq_answers=$(jq -r '@sh \"a=\\(.a) b=\\(.b | length)\"' \"$f\"); eval \"$jq_answers\"; done\n",
    )]);
    jq.refuses(&[
        ("for f in x; do a=$(jq -r .a \"$f\"); b=$(jq -r .b \"$a\"); done\n", "no other statement"),
        ("for f in x; do a=$(jq -r .a \"$f\"); b=$(jq -r .b[] \"$f\"); done\n", "with one text"),
        ("for f in x; do a=$(jq -r .a \"$f\"); echo; b=$(jq -r .b \"$f\"); done\n", "no other statement"),
    ]);
}
