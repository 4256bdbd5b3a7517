//! Executes edited scripts: in bash and dash, they must print, fail and leave behind what the
//! scripts did before. The files have names that are hard to handle.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::Calls;
use crate::explain::advice::edit::{Edit, Form, Host, Rewrite, spliced};
use crate::patterns::shells::Dialect;

const NAMES: [&str; 6] = ["plain", "with space", "-leading", "star*", "quote'd", "x.c"];
pub(super) const BOTH: &[&str] = &["bash", "dash"];

/// Runs a script in a directory with files, and returns what it printed and left behind.
pub(super) fn run(shell: &str, script: &str) -> (Output, String) {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("d")).unwrap();
    NAMES.iter().for_each(|name| fs::write(at("d").join(name), format!("@A@ of {name}\n")).unwrap());
    fs::write(at("d/two\nlines"), "two").unwrap();
    fs::write(at("list"), "plain\nwith space\nstar*\nx.c\n").unwrap();
    fs::write(at("script"), script).unwrap();
    let output = Command::new(shell).args(["../script", "plain", "x.c"]).current_dir(at("d")).output().unwrap();
    (output, tree(&at("d")))
}

pub(super) fn tree(directory: &Path) -> String {
    let mut lines: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&entry.metadata().unwrap().permissions());
            format!("{:?} {mode:o} {:?}", entry.file_name(), fs::read_to_string(entry.path()).unwrap_or_default())
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Checks that the edit of the calls in a line contains a text, and that the script then does the
/// same.
pub(in crate::explain::advice) fn check(
    shells: &[&str],
    program: &str,
    recorded: &[&str],
    form: Form,
    script: &str,
    expected: &str,
) {
    let mut calls = Calls::of(program, &[recorded], form).rewrite;
    if shells == ["dash"] {
        calls.dialect = Dialect::Posix;
    }
    let rewrite = Ok(Rewrite::Shell(calls, Host::Script));
    let line = 1 + script.lines().position(|line| line.contains(program)).unwrap() as u32;
    let edit = Edit::of((b"script", line, None), 0, rewrite);
    let splices = edit.splices(script.as_bytes()).unwrap_or_else(|refusal| panic!("{script}: {refusal}"));
    let edited = String::from_utf8(spliced(script.as_bytes(), &splices)).unwrap();
    assert!(edited.contains(expected), "{script}\nbecame\n{edited}");
    for shell in shells {
        for settings in ["", "set -e\n", "set -u\n"] {
            let ((before, old), (after, new)) =
                (run(shell, &format!("{settings}{script}")), run(shell, &format!("{settings}{edited}")));
            let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text(&after), text(&before), "{shell} {settings}: {edited}");
            assert_eq!(after.status, before.status, "{shell} {settings}: {edited}");
            assert_eq!(after.stderr.is_empty(), before.stderr.is_empty(), "{shell} {settings}: {edited}: {after:?}");
            assert_eq!(new, old, "{shell} {settings}: {edited}");
        }
    }
}

pub(super) fn many(program: &str, recorded: &[&str], script: &str, expected: &str) {
    check(BOTH, program, recorded, Form::Many, script, expected);
}

#[test]
fn all_words_of_a_loop_are_passed_at_once() {
    let chmod: &[&str] = &["600", "--", "plain"];
    many("chmod", chmod, "for f in *; do\n  chmod 600 -- \"$f\"\ndone; false\n", "chmod 600 -- *; false");
    many(
        "chmod",
        chmod,
        "nothing=; for f in $nothing; do chmod 600 -- \"$f\"; done 2>&1 || :\necho $?\n",
        "[ $# -eq 0 ] || chmod 600 -- \"$@\")",
    );
    many("chmod", chmod, "for f in \"$@\"; do chmod 600 -- \"$f\"; done\n", "set -- \"$@\";");
    many(
        "chmod",
        chmod,
        "for f in * none; do chmod 600 -- \"$f\" || exit 3; done\necho end\n",
        "chmod 600 -- * none || exit 3",
    );
    many(
        "cat",
        &["-u", "plain"],
        "for f in x.c ./*; do cat -u \"$f\"; done | cksum; false\n",
        "cat -u x.c ./* | cksum",
    );
    many(
        "sed",
        &["-i", "s/@A@/vA/g", "./plain"],
        "for f in ./*; do\n  for k in A B; do\n    sed -i \"s/@$k@/v$k/g\" \"$f\"\n  done\ndone\necho end\n",
        "for k in A B; do\n    sed -i \"s/@$k@/v$k/g\" ./*\n  done\n",
    );
}

#[test]
fn a_failure_in_the_middle_is_reported_and_the_others_are_handled() {
    let script = "for f in none *; do chmod 600 -- \"$f\"; done\necho end\n";
    let edited = script.replace("for f in none *; do chmod 600 -- \"$f\"; done", "chmod 600 -- none *");
    let calls = Calls::of("chmod", &[&["600", "--", "plain"]], Form::Many);
    assert_eq!(calls.edit(1, script), Ok(edited.clone()));
    let ((before, old), (after, new)) = (run("bash", script), run("bash", &edited));
    assert_eq!((after.stdout, after.stderr, new), (before.stdout, before.stderr, old));
    let stopped = run("bash", &format!("set -e\n{edited}")).0;
    assert!(!stopped.status.success() && stopped.stdout.is_empty(), "set -e still ends the script");
}

#[test]
fn lines_and_computed_words_are_passed_through_xargs() {
    let cat: &[&str] = &["--", "plain"];
    many(
        "cat",
        cat,
        "sort -r ../list | while IFS= read -r f; do cat -- \"$f\"; done\n",
        "sort -r ../list | xargs -r -d '\\n' cat --",
    );
    many(
        "cat",
        cat,
        "while IFS= read -r f; do\n  cat -- \"$f\" || exit 1\ndone <../list >out\ncksum out\n",
        "xargs -r -d '\\n' cat -- <../list >out || exit 1",
    );
    many(
        "cat",
        cat,
        "sort ../list | while IFS= read -r f; do cat -- \"$f\" || exit 1; done; echo end\n",
        "xargs -r -d '\\n' cat --; echo end",
    );
    many("cat", cat, ": | while IFS= read -r f; do cat -- \"$f\"; done; echo end\n", "xargs -r -d");
    many(
        "cat",
        &["x.c"],
        "for e in c; do cat \"x.$e\"; done >out\ncksum out\n",
        "printf '%s\\0' \"x.$e\"; done | xargs -r0 cat >out",
    );
    many(
        "cat",
        cat,
        "while read -r a b; do n=\"$a${b:+ $b}\"; cat -- \"$n\"; done <../list; echo end\n",
        "done <../list | xargs -r0 cat --; echo end",
    );
    many("cat", cat, "for f; do cat -- \"$f\"; done\n", "printf '%s\\0' \"$f\"; done | xargs -r0 cat --");
    check(
        &["bash"],
        "cat",
        &["x.1"],
        Form::Many,
        "for e in 1 2; do echo $e >x.$e; done\nfor ((i = 1; i < 3; i++)); do cat x.$i; done\n",
        "printf '%s\\0' x.$i; done | xargs -r0 cat",
    );
}

#[test]
fn one_call_answers_all_rounds() {
    let size: &[&str] = &["-c", "%s", "--", "plain"];
    let sum = "sum=0\nfor f in [a-z]*; do\n  s=$(stat -c %s -- \"$f\")\n  sum=$((sum + s)); echo \"$f: $s\"\ndone  # all\necho $sum; false\n";
    many(
        "stat",
        size,
        sum,
        "IFS= read -r s <&3 && [ -n \"$s\" ] || s=$(stat -c %s -- \"$f\")\n  sum=$((sum + s)); echo \"$f: $s\"\ndone 3<<END  # all\n\
         $(set -- [a-z]*; answers=$(stat -c %s -- \"$@\" 2>/dev/null) && [ $(printf",
    );
    let products = "for i in $(seq 3); do\n  x=2$i\n  v=$(echo \"scale=2; $x * 1.5\" | bc)\n  read -r y; echo \"$v $y\"\ndone <../list\n";
    let question = "done 3<<END <../list\n$(for i in $(seq 3); do x=2$i; printf '%s\\n' \"scale=2; $x * 1.5\"; done | bc; echo .)\nEND\n";
    many("bc", &[], products, question);
    let count = "for f in [a-z]*; do if [ $(grep -c of \"$f\") -gt 0 ]; then echo \"$f\"; fi; done\n";
    many("grep", &["-c", "of", "plain"], count, "$(grep -h -c of \"$@\" 2>/dev/null) || [ $? -eq 1 ] && [");
    let lines = "for f in [a-z]*; do n=$(wc -l < \"$f\"); echo \"$n $f\"; done\n";
    many(
        "wc",
        &["-l"],
        lines,
        "$(wc -l -- \"$@\" 2>/dev/null) && [ $(printf '%s\\n' \"$answers\" | wc -l) -eq $(($# + ($# > 1))) ]",
    );
    let sums = "for f in [a-z]*; do s=$(sha1sum \"$f\" | awk '{print $1}'); echo \"$s\"; done\n";
    many("sha1sum", &["plain"], sums, "&& printf '%s\\n' \"$answers\" | awk '{print $1}')\nEND");
    let fields = "while read -r a b; do x=$(echo \"$a\" | tr a-z A-Z); echo \"$x $b\"; done < ../list\n";
    many(
        "tr",
        &["a-z", "A-Z"],
        fields,
        "$(while read -r a b; do printf '%s\\n' \"$a\"; done < ../list | tr a-z A-Z; echo .)\nEND",
    );
    let first = "for f in [a-z]*; do n=$(wc -c < \"$f\"); s=$(stat -c %s -- \"$f\"); echo \"$n $s\"; done";
    many("wc", &["-c"], first, "read -r n _ <&3 && [ -n \"$n\" ] || n=$(wc -c < \"$f\"); s=$(stat");
    let second = Calls::of("wc", &[&["-c"]], Form::Many).edit(1, first).unwrap();
    many("stat", size, &second, "done 4<<END_ 3<<END\n$(set -- [a-z]*; answers=$(stat");
    let piped =
        "ls x.c plain 'with space' | sort | while read -r f; do s=$(stat -c %s -- \"$f\"); echo \"$f $s\"; done\n";
    many(
        "stat",
        size,
        piped,
        "$(ls x.c plain 'with space' | sort | while read -r f; do printf '%s\\0' \"$f\"; done | xargs",
    );
    let found = "while IFS= read -r -d '' f; do s=$(stat -c %s -- \"$f\"); echo \"$f $s\"; done < <(find . -type f -print0 | sort -z)\n";
    check(&["bash"], "stat", size, Form::Many, found, "done < <(find . -type f -print0 | sort -z) | xargs");
    let spaces = "while read -r a b; do x=$(echo \"$a\" | tr a-z A-Z); echo \"$x $b\"; done < \"with space\"\n";
    many("tr", &["a-z", "A-Z"], spaces, "done < \"with space\" | tr a-z A-Z; echo .)");
    let computed =
        "while read -r a; do x=$(echo \"$a\" | awk '{print toupper($1) \":\" NF + 1}'); echo \"$x\"; done < ../list\n";
    many("awk", &["{print toupper($1) \":\" NF + 1}"], computed, "| awk '{print toupper($1)");
    let changing = "ls | while read -r f; do x=$(echo \"$f\" | tr a b); touch \"new $x\"; done\n";
    assert!(Calls::of("tr", &[&["a", "b"]], Form::Many).edit(1, changing).is_err(), "ls may see the new files");
    let counted = "while read -r a; do x=$(echo \"$a\" | awk '{print NR}'); echo \"$x\"; done < ../list\n";
    assert!(Calls::of("awk", &[&["{print NR}"]], Form::Many).edit(1, counted).is_err(), "each awk counts from 1");
    let twice = "for f in *.c; do e=$(echo \"$f\" | rev | cut -d. -f1 | rev); echo \"$e\"; done\n";
    many("rev", &[], twice, "e=${f##*.}");
    let commit = "0123456789012345678901234567890123456789";
    let log = format!("for c in {commit}; do s=$(git log -1 --format=%s \"$c\"); echo \"$s\"; done\n");
    let edited = Calls::of("git", &[&["log", "-1", "--format=%s", commit]], Form::Many).edit(1, &log).unwrap();
    assert!(
        edited.contains("set -- 0123456789012345678901234567890123456789; answers=$(git show -s --format=%s \"$@\""),
        "{edited}"
    );
    let skipped = "for f in *; do [ -d \"$f\" ] && continue; s=$(stat -c %s -- \"$f\"); echo $s; done\n";
    assert!(Calls::of("stat", &[size], Form::Many).edit(1, skipped).is_err(), "not each round asks");
    let short = format!("for c in {commit}; do s=$(git rev-parse --short \"$c\"); echo \"$s\" >>log; done\n");
    let edited = Calls::of("git", &[&["rev-parse", "--short", commit]], Form::Many).edit(1, &short).unwrap();
    assert!(edited.contains("answers=$(git show -s --format=%h \"$@\""), "commits do not change: {edited}");
    let links = "for f in x.c 'star*' plain; do t=$(readlink -f \"$f\"); echo \"${t##*/}\"; done";
    many("readlink", &["-f", "plain"], links, "done 3<<END\n$(set -- x.c 'star*' plain; answers=$(readlink -f \"$@\"");
}

#[test]
fn calls_among_others_are_collected_in_an_array() {
    let bash = |program: &str, recorded: &[&str], script: &str, expected: &str| {
        check(&["bash"], program, recorded, Form::Many, script, expected);
    };
    bash(
        "chmod",
        &["600", "--", "plain"],
        "for f in *; do\n  echo \"$f\"\n  chmod 600 -- \"$f\"\n  touch -d @0 -- \"$f\"\ndone\necho end\n",
        "chmod_files+=(\"$f\")\ndone\n[ ${#chmod_files[@]} -eq 0 ] || chmod 600 -- \"${chmod_files[@]}\"\n[ ${#chmod_files[@]} -eq 0 ] || touch",
    );
    bash(
        "rm",
        &["-f", "--", "plain"],
        "shopt -s nullglob\nfor f in p* none*; do [ -e \"$f\" ] || continue; rm -f -- \"$f\" || exit 1; done; echo $f\n",
        "rm_files+=(\"$f\"); done; [ ${#rm_files[@]} -eq 0 ] || rm -f -- \"${rm_files[@]}\" || exit 1; echo",
    );
    bash(
        "cp",
        &["./plain", "../e/plain"],
        "mkdir -p ../e\nd=../e\nfor f in ./*; do n=$(basename \"$f\"); cp \"$f\" \"$d/$n\"; echo \"$n\"; done\nls $d\n",
        "|| cp \"${cp_files[@]}\" \"$d/\"\nls",
    );
    bash(
        "mkdir",
        &["-p", "../1/2"],
        "ls | while read -r f; do for i in 1 2; do mkdir -p \"../$i/$f\"; echo $i; done; done; ls ../1 ../2\n",
        "ls | { mkdir_files=(); while read",
    );
    for (program, other) in [
        ("chmod", "for f in *; do chmod 1 \"$f\"; cat \"$f\"; done"),
        ("chmod", "for f in *; do chmod 1 \"$f\"; [ -x \"$f\" ]; done"),
        ("chmod", "for f in *; do chmod 1 \"$f\"; x; done"),
        ("chmod", "for f in *; do [ -e x ] || exit; chmod 1 \"$f\"; done"),
        ("chmod", "for f in *; do echo; if chmod 1 \"$f\"; then echo; fi; done"),
        ("mv", "for f in *; do echo; mv 1 \"$f\"; done"),
    ] {
        Calls::of(program, &[&["1", "a"]], Form::Many).edit(1, other).expect_err(other);
    }
}

#[test]
fn lines_and_words_of_a_file_are_read_once() {
    let bash = |program: &str, recorded: &[&str], script: &str, expected: &str| {
        check(&["bash"], program, recorded, Form::Many, script, expected);
    };
    let lines = "for i in 1 2 3 9; do\n  x=$(sed -n \"${i}p\" ../list)\n  echo \"$i: $x\"\ndone\n";
    bash(
        "sed",
        &["-n", "1p", "../list"],
        lines,
        "lines=(''); mapfile -t -O 1 lines <../list\nfor i in 1 2 3 9; do\n  x=${lines[i]-}\n",
    );
    let tail = "f=../list\nfor i in 1 4 9 0; do for j in 1 2; do echo \"$(head -n $i \"$f\" | tail -1)\"; done; done\n";
    bash("head", &["-n", "1", "../list"], tail, "lines=(''); mapfile -t -O 1 lines <\"$f\"\nfor i");
    bash("head", &["-n", "1", "empty"], &tail.replace("../list\n", "empty; : >empty\n"), "lines[@]: -1");
    let head = "for f in [a-z]* none; do if head -n 2 \"$f\" | grep -q '^@A'; then echo \"$f\"; fi; done\n";
    bash("grep", &["-q", "^@A"], head, "{ head_lines=(); mapfile -t -n 2 head_lines <\"$f\";");
    let whole = "for f in [a-z]*; do head -1 \"./$f\" | grep -qxF \"@A@ of $f\" || echo \"$f\"; done\n";
    let read = "{ head_lines=; IFS= read -r head_lines <\"./$f\" || :; ";
    for shell in BOTH {
        check(&[shell], "grep", &["-qxF", "@A@ of plain"], Form::Many, whole, read);
    }
    let words = "while read -r w; do if grep -qxF \"$w\" ../list; then echo \"$w\"; fi; done <../list\n";
    bash(
        "grep",
        &["-qxF", "plain", "../list"],
        words,
        "contents=$(<../list)\nwhile read -r w; do if [[ $'\\n'$contents$'\\n' == *$'\\n'\"$w\"$'\\n'* ]]; then",
    );
    let part = "for w in pl x none; do grep -q \"$w\" ../list || echo \"$w\"; done\n";
    check(&["dash"], "grep", &["-q", "pl", "../list"], Form::Many, part, "*\"$w\"*");
    let other = "for w in a b; do grep -qi \"$w\" ../list; done";
    Calls::of("grep", &[&["-q", "pl", "../list"]], Form::Many).edit(1, other).expect_err(other);
}

#[test]
fn numbers_of_seq_become_those_of_the_shell() {
    let seq = |shells: &[&str], recorded: &[&str], script: &str, expected: &str| {
        check(shells, "seq", recorded, Form::Many, script, expected);
    };
    seq(BOTH, &["2", "4"], "for i in $(seq 2 4); do echo $i; done; echo $i\n", "for i in 2 3 4; do");
    seq(&["bash"], &["12"], "for i in x $(seq 12); do echo $i; done; echo $i\n", "for i in x {1..12}; do");
    let counted = "n=3\nfor i in $(seq 1 $n); do echo $i; done\nfor i in a; do echo $i; done\n";
    seq(&["bash"], &["1", "3"], counted, "for ((i = 1; i <= n; i++)); do echo");
    for other in
        ["n=3; for i in $(seq 1 $n); do i=1; done", "for i in $(seq 1 $n); do :; done; echo $i", "x=$(seq 1 3)"]
    {
        Calls::of("seq", &[&["1", "3"]], Form::Many).edit(1, other).expect_err(other);
    }
}

#[test]
fn a_script_waits_for_its_child() {
    let wait = |script: &str, expected: &str| check(BOTH, "sleep", &["0.1"], Form::Wait, script, expected);
    wait("(exit 3) &\nwhile kill -0 $! 2>/dev/null; do\n  sleep 0.1\ndone\necho end $?\n", "wait $! || :\necho end");
    wait(
        "cat ../list & p=$!\nwhile kill -0 \"$p\" 2> /dev/null; do sleep 0.1; done; false\n",
        "wait \"$p\" || :; false",
    );
    for other in [
        "while kill -0 $p 2>/dev/null; do sleep 0.1; done",
        "p=$! p=$1; while kill -0 $p 2>/dev/null; do sleep 0.1; done",
        "while kill -0 $!; do sleep 0.1; done",
        "while kill -0 $! 2>/dev/null; do x; sleep 0.1; done",
        "until kill -0 $! 2>/dev/null; do sleep 0.1; done",
        "(while kill -0 $! 2>/dev/null; do sleep 0.1; done)",
        "while kill -0 $! 2>/dev/null; do sleep 0.1; done; wait $!",
    ] {
        Calls::of("sleep", &[&["0.1"]], Form::Wait).edit(1, other).expect_err(other);
    }
}

pub(super) fn pass(program: &str, recorded: &[&str], script: &str, expected: &str) {
    check(BOTH, program, recorded, Form::Pass, script, expected);
}

#[test]
fn xargs_and_find_pass_many_inputs() {
    pass(
        "xargs",
        &["-n1", "md5sum"],
        "grep -v ' ' ../list | xargs -n1 md5sum | sort; false\n",
        "| xargs md5sum | sort",
    );
    pass(
        "xargs",
        &["-0", "-n", "1", "md5sum", "--"],
        "printf '%s\\0' * | xargs -0 -n 1 md5sum --\n",
        "xargs -0 md5sum --\n",
    );
    pass(
        "xargs",
        &["-I", "{}", "cat", "--", "{}"],
        "xargs -I {} cat -- {} <../list\n",
        "xargs -r -d '\\n' cat -- <../list",
    );
    pass("xargs", &["-I{}", "cat", "{}"], ": | xargs -I{} cat {}\necho end\n", ": | xargs -r -d '\\n' cat\n");
    let find: &[&str] = &[".", "-type", "f", "-exec", "chmod", "600", "{}", ";"];
    pass("find", find, "find . -type f -exec chmod 600 {} \\;\n", "-exec chmod 600 {} +\n");
}

#[test]
fn a_shell_for_each_input_becomes_one_with_a_loop() {
    let code = "b=$(basename \"$1\" .c); mv -- \"$1\" \"./$b.md\"";
    let script = format!("find . -type f -name '*[a-z]' -exec sh -c '{code}' sh {{}} \\;\necho end\n");
    let words: &[&str] = &[".", "-type", "f", "-name", "*[a-z]", "-exec", "sh", "-c", code, "sh", "{}", ";"];
    let looped = "sh -c 'for f; do b=$(basename \"$f\" .c); mv -- \"$f\" \"./$b.md\"; done' sh {} +";
    pass("find", words, &script, looped);
    let code = "\n  d=$(cat -- \"$0\" | tr a b)\n  echo \"$0: $d\"\n";
    let words: &[&str] = &["-0", "-n1", "sh", "-c", code];
    let looped = "xargs -0 sh -c 'for f; do d=$(cat -- \"$f\" | tr a b)\n  echo \"$f: $d\"\ndone' sh\n";
    pass("xargs", words, &format!("printf '%s\\0' [a-z]* | xargs -0 -n1 sh -c '{code}'\n"), looped);
    let words: &[&str] = &["-I{}", "sh", "-c", "cat ./{} | cksum"];
    let script = "grep -v '[ *]' ../list | xargs -I{} sh -c \"cat ./{} | cksum\"\n";
    pass("xargs", words, script, "sh -c 'for f; do cat ./\"$f\" | cksum; done' sh\n");
    let (words, script): (&[&str], _) = (&["-I{}", "sh", "-c", "cat {} | cksum"], script.replace("./{}", "{}"));
    pass("xargs", words, &script, "xargs -r -d '\\n' sh -c 'for f; do cat \"$f\" | cksum; done' sh\n");
    for code in
        ["cd $1; x", "x=$x$1; y", "y $1 $2", "exit $1", "[ -e $1 ] && x=1; y $x", "y \"$@\"", "x() { y; }; x $1"]
    {
        let script = format!("find . -exec sh -c '{code}' sh {{}} \\;");
        let calls = Calls::of("find", &[&[".", "-exec", "sh", "-c", code, "sh", "{}", ";"]], Form::Pass);
        calls.edit(1, &script).expect_err(code);
    }
}

#[test]
fn what_launchers_do_besides_is_not_lost() {
    for (program, script) in [
        ("xargs", "x | xargs -n1 -P4 md5sum"),
        ("xargs", "x | xargs -n2 md5sum"),
        ("xargs", "x | xargs -I{} cp {} d"),
        ("xargs", "x | xargs -p -n1 rm"),
        ("find", "find . -exec cp {} d \\;"),
        ("find", "find . -exec md5sum {} \\; -print"),
    ] {
        let words: Vec<&str> = script.trim_start_matches("x | ").split(' ').skip(1).collect();
        let words: Vec<&str> = words.into_iter().map(|word| if word == "\\;" { ";" } else { word }).collect();
        Calls::of(program, &[&words], Form::Pass).edit(1, script).expect_err(script);
    }
}

#[test]
fn one_call_answers_several_questions() {
    let script = "for t in 0 86400; do\n  y=$(date -u -d \"@$t\" '+%Y %m')\n  d=$(date -u -d \"@$t\" +%d)\n  echo \"$y $d\"\ndone\n";
    let expected = "date_answers=$(date -u -d \"@$t\" '+%Y %m%n%d' && echo .); { IFS= read -r y; IFS= read -r d; } <<END\n$date_answers\nEND\n";
    check(BOTH, "date", &["-u", "-d", "@0", "+%Y %m"], Form::Together, script, expected);
    let fails = script.replace("86400", "none 1");
    check(BOTH, "date", &["-u", "-d", "@0", "+%Y %m"], Form::Together, &fails, "<<END\n");
    let files =
        "for f in * none; do\n  s=$(stat -c %s \"$f\")\n  t=$(stat -c '%F %a' \"$f\")\n  echo \"$f $s $t\"\ndone\n";
    check(BOTH, "stat", &["-c", "%s", "x.c"], Form::Together, files, "stat -c '%s\n%F %a' \"$f\" && echo .)");
    Calls::of("stat", &[&["-c", "%n", "x.c"]], Form::Together).edit(2, &files.replace("%s", "%n")).unwrap_err();
}

#[test]
fn adjacent_calls_become_one() {
    let directories = "v=f\nmkdir -p ../a/'b c'\nmkdir -p ../a/d ../e\n\nmkdir -p \"../$v\"\nls ..; ls ../a\n";
    many("mkdir", &["-p", "../a/b c"], directories, "mkdir -p ../a/'b c' ../a/d ../e \"../$v\"\nls");
    let sed = "v=1\nsed -i \"s/@A@/$v/\" plain\nsed -i 's|1|two|g' plain\nsed -i 's/of/OF/' x.c\n";
    many("sed", &["-i", "s/@A@/1/", "plain"], sed, "sed -i -e \"s/@A@/$v/\" -e 's|1|two|g' plain\nsed");
}

#[test]
fn scripts_of_sed_are_collected_in_a_loop() {
    let script = "for k in A B of; do\n  [ -n \"$k\" ] || continue; sed -i \"s/$k/<$k>/\" x.c\ndone\ncat x.c\n";
    let form = Form::Many;
    let calls = Calls::of("sed", &[&["-i", "s/A/<A>/", "x.c"], &["-i", "s/B/<B>/", "x.c"]], form);
    let edited = calls.edit(2, script).unwrap();
    assert!(edited.contains("printf '%s\\n' \"s/$k/<$k>/\"\ndone | sed -i -f - x.c\n"), "{edited}");
    BOTH.iter().for_each(|shell| assert_eq!(run(shell, &edited).0.stdout, run(shell, script).0.stdout));
    let refused = Calls::of("sed", &[&["-i", "s/A/\\n/", "x.c"], &["-i", "1d", "x.c"]], Form::Many);
    assert!(refused.edit(2, script).is_err());
}

#[test]
fn a_question_that_fails_still_ends_the_script() {
    let script = "echo '{\"a\": \"x y\", \"b\": 2}' >x.c\nfor f in x.c none; do\n  a=$(jq -r .a \"$f\")\n  b=$(jq -r .b \"$f\")\n  echo \"$a-$b\"\ndone\necho end\n";
    check(BOTH, "jq", &["-r", ".a", "x.c"], Form::Together, script, "a= b= jq_answers=$(jq");
    let script = "echo '[{\"a\": \"x y\", \"b\": 2}, {\"a\": \"$HOME \\\\ *\\n`id`\"}]' >x.c\nfor i in 0 1 2 x; do\n  a=$(jq -r \".[$i].a\" x.c)\n  b=$(jq -r \".[$i].b\" x.c)\n  echo \"$a-$b\"\ndone\necho end\n";
    let expected = "jq_answers=$(jq -r \"@sh \\\"a=\\\\(.[$i].a) b=\\\\(.[$i].b)\\\"\" x.c)";
    check(BOTH, "jq", &["-r", ".[0].a", "x.c"], Form::Together, script, expected);
    for recorded in [".[].a", ".[0,1].a", ".a // empty"] {
        Calls::of("jq", &[&["-r", recorded, "x.c"]], Form::Together).edit(3, script).expect_err(recorded);
    }
    let formats = "for f in %n; do\n  a=$(date -d @0 \"+$f\")\n  b=$(date -d @0 +%Y)\ndone\n";
    Calls::of("date", &[&["-d", "@0", "+%m"]], Form::Together).edit(2, formats).unwrap_err();
    let between = "t=@0; for i in 1 2; do\n  a=$(date -u -d $t +%Y)\n  # a number\n  n=$((a + i))\n  b=$(date -u -d $t +%m)\n  echo \"$a $b $n\"\ndone\n";
    check(
        BOTH,
        "date",
        &["-u", "-d", "@0", "+%Y"],
        Form::Together,
        between,
        "\nEND\n  # a number\n  n=$((a + i))\n  echo",
    );
    let calls = Calls::of("date", &[&["-u", "-d", "@0", "+%Y"]], Form::Together);
    let edit = |other: &str| calls.edit(2, &between.replace("n=$((a + i))", other));
    ["n=$b", "t=@9", "n=$((i++))", "n=$(echo 1)", "n=1; m=2"].iter().for_each(|other| assert!(edit(other).is_err()));
    let beside = "a=$(date -u -d @0 +%Y)\nb=$(date -u -d @0 +%m)\nc=$(date -u -d @1 -R)\necho $a $b $c\n";
    check(BOTH, "date", &["-u", "-d", "@0", "+%Y"], Form::Together, beside, "\nc=$(date");
}

/// The recipe `together-in-place` names this call.
#[test]
fn one_call_of_git_has_the_branch_changes_and_stashes() {
    let as_someone = "git -c user.name=a -c user.email=a@b";
    let script = format!(
        "set -e; git init -q -b own .; git add .; {as_someone} commit -qm x; echo y >>x.c; {as_someone} stash -q\n\
         echo y >>x.c; git rev-parse HEAD; git status --porcelain=v2 --branch --show-stash"
    );
    let (output, _) = run("/bin/sh", &script);
    let text = String::from_utf8(output.stdout).unwrap();
    let commit = text.lines().next().unwrap();
    for line in [&format!("# branch.oid {commit}"), "# branch.head own", "# stash 1"] {
        assert!(text.lines().any(|each| each == line), "{line}: {text}");
    }
    assert!(text.lines().any(|line| line.starts_with("1 .M ") && line.ends_with(" x.c")), "{text}");
}
