//! `advise --patch` on real recordings: the diff is applied, and the scripts do the same as before. The names have spaces, newlines, leading
//! dashes and patterns.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::run::{Finished, Record, SPAWNSCOPE, run};
use crate::support::{apply, live_test};

/// Calls of all programs that have an edit in every shell. It fails at the end.
const ANY_SHELL: &str = r#"
set -e
for round in 1 2 3 4 5 6 7 8; do
    for p in 'a b/c d.c' "new
name/x.c" 'dir/*.c' './-n.c' 'x/ y .c '; do
        d=$(dirname "$p")
        printf '[%s]\n' "$d" "$(basename "$p")"
        stem=$(basename "$p" .c)
        printf '<%s>\n' "$stem"
    done
    for p in -n/-e.c -x/y 'a/-- b'; do
        d=`dirname -- "$p"`
        b=$(basename -- "${p}")
        printf '(%s %s)\n' "$d" "$b"
    done
    while IFS= read -r text; do
        key=$(printf '%s\n' "$text" | cut -d: -f1)
        value=$(printf '%s\n' "$text" | cut -d: -f2)
        printf '%s\n' "$key" "$value" "$(printf %s "$text" | sed 's/:.*//')"
    done <<'END'
a:b:c
-x y: z
*:?

no colon
\n:\\
END
done
"#;
/// Calls that have an edit in bash only.
const BASH_ONLY: &str = r#"
for round in 1 2 3 4 5 6 7 8; do
    while IFS= read -r text; do
        a=$(echo "$text" | tr -d :)
        b=$(tr : / <<<"$text")
        c=$(sed s/b/x/g <<< "$text")
        printf '%s\n' "$a" "$b" "$c"
    done <<'END'
a:b:c
-x y: z
*:? b b
\n:\\
END
done
"#;
/// Calls whose replacements are words, commands and conditions of bash.
const FORMS_OF_BASH: &str = r#"
set -e
for round in 1 2 3 4 5 6 7 8; do
    for p in 'a b/c d.c' 'dir/*.c' './-n.c' '-x y' '\'; do
        number=$(expr $round \* 3)
        echo "$(expr "$number" - 24)" "$(date +%Y)"
        upper=$(echo "$p" | tr a-z A-Z)
        third=$(echo "$upper:a:$p" | cut -d: -f3)
        fifth=$(echo "$p:a" | cut -d: -f5)
        if echo "x$p" | grep -q '/c'; then echo yes; fi
        if echo "$p:a" | grep -qE '^(a|d.).*c$'; then echo no; fi
        ! grep -q ' ' <<<"$p" || echo blank
        printf '%s\n' "$upper" "$third" "$fifth"
    done
done
"#;
/// Calls whose replacements are commands of every shell.
const FORMS_OF_ANY_SHELL: &str = r#"
set -e
kernel() { uname -s; }
for round in 1 2 3 4 5 6 7 8; do
    for p in 'a b/c d.c' 'dir/*.c' './-n.c' 'a'; do
        number=$(expr "$round" + 3)
        text=$(echo "x$p" | sed s/a/b/)
        if echo "x$p" | grep -q /c; then echo yes; fi
        basename "$round/$p" .c
        printf '%s\n' "$number" "$text" "$(kernel)" "$(basename "x/$p")"
    done
done
"#;
/// Loops that are one call. The list of the last one is empty.
const LOOPS: &str = r#"
set -e
mkdir -p made
for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do : >"made/-$number a
b"; : >"made/$number *"; done
cd made
for f in *; do
    touch -r .. -- "$f"
done
ls | grep '[*]' | while IFS= read -r f; do chmod 600 "$f"; done
for f in $nothing; do touch "$f"; done
stat -c '%a %Y' -- * | uniq -c | wc -l
"#;
/// Programs that get one input from xargs and find.
const LAUNCHERS: &str = r#"
set -e
mkdir -p each
for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do echo $number >"each/-$number a"; echo >"each/$number *"; done
cd each
find . -type f -print0 | xargs -0 -n1 md5sum | sort
find . -type f -exec chmod 600 {} \;
find . -type f -exec sh -c 'name=${1##*/}; cksum <"$1" | cut -d " " -f 1; echo "$name"' sh {} \; | sort
stat -c '%a' -- * | uniq -c
"#;
const END: &str = "false\necho not reached\n";

fn write_script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("an executable script");
    path
}

/// Prints the patch in a directory.
fn patch_of(recording: &Path, directory: &Path) -> Finished {
    let mut advise = Command::new(SPAWNSCOPE);
    run(advise.args(["advise", "--patch"]).arg(recording).current_dir(directory)).expect_code(0)
}

/// Applies a patch, first on a copy by git, then by `patch`, if it is installed. Both change the file in the same way.
fn apply_patch(patch: &[u8], script: &Path) {
    let directory = script.parent().expect("a directory");
    let original = fs::read(script).expect("the script");
    let diff = directory.join("changes.diff");
    fs::write(&diff, patch).expect("the diff");
    // No repository above the temporary directory may change what git does.
    let mut git = Command::new("git");
    git.args(["apply", "-p0", "changes.diff"]).current_dir(directory).env("GIT_CEILING_DIRECTORIES", "/");
    run(&mut git).expect_code(0);
    let by_git = fs::read(script).expect("the script");
    assert_ne!(by_git, original);
    if Command::new("patch").arg("--version").stdout(Stdio::null()).status().is_ok() {
        fs::write(script, &original).expect("the script");
        let mut patch = Command::new("patch");
        run(patch.args(["-p0", "-i", "changes.diff"]).current_dir(directory)).expect_code(0);
        assert_eq!(fs::read(script).expect("the script"), by_git);
    }
}

/// Records a script, applies the patch, which must contain these parts, and runs the script again.
fn assert_does_the_same(shell: &str, body: &str, parts: &[&str]) {
    best_of_three(|| {
        let record = Record::new();
        let text = format!("#!{shell}\n{body}{END}");
        let script = write_script(record.directory(), "a script.sh", &text);
        // The name is relative, so the recorded directory is needed, too.
        let before = record.command(["./a script.sh"]).current_dir(record.directory()).output().expect("a recording");
        assert_eq!(before.status.code(), Some(1), "{}", String::from_utf8_lossy(&before.stderr));
        let patch = patch_of(&record.file(), record.directory());
        let text = patch.output();
        let added: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix('+')).collect();
        for part in parts {
            ok_if(added.iter().any(|line| line.contains(part)), || {
                format!("{shell}: `{part}` is not in the patch:\n{text}{}", patch.errors())
            })?;
        }
        apply_patch(&patch.stdout, &script);
        let after = run(Command::new(&script).current_dir(record.directory())).expect_code(1);
        assert_eq!(String::from_utf8_lossy(&before.stdout), after.output(), "{shell}");
        Ok(())
    });
}

/// The replacements in `ANY_SHELL`.
const IN_ANY_SHELL: [&str; 8] = [
    "d=${p%/*}",
    "\"${p##*/}\"",
    "stem=${p##*/}; stem=${stem%.c}",
    "b=${p##*/}",
    "key=${text%%:*}",
    "value=${text#*:}; value=${value%%:*}",
    "\"${text%%:*}\"",
    "printf '[%s]",
];

#[apply(live_test)]
#[needs(Ebpf)]
fn a_patched_script_of_bash_does_the_same() {
    assert_does_the_same("/bin/bash", ANY_SHELL, &IN_ANY_SHELL);
    assert_does_the_same(
        "/bin/bash",
        &format!("set -e{BASH_ONLY}"),
        &["a=${text//[:]/}", "b=${text//://}", "c=${text//b/x}"],
    );
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_patched_script_of_dash_does_the_same() {
    assert_does_the_same("/bin/dash", ANY_SHELL, &IN_ANY_SHELL);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn every_form_of_a_replacement_does_the_same() {
    let of_bash = [
        "number=$((round * 3))",
        "printf -v date_result '%(%Y)T' -1",
        "upper=${p^^}",
        "third=${third%%:*};;",
        "fifth=${fifth%%:*};;",
        "if [[ \"x$p\" == *'/c'* ]]",
        "if [[ \"$p:a\" =~ ^(a|d.).*c$ ]]",
    ];
    assert_does_the_same("/bin/bash", FORMS_OF_BASH, &of_bash);
    let of_any_shell = [
        "number=$((round + 3))",
        "text=\"x$p\"; case $text in *a*) text=${text%%a*}b${text#*a};; esac",
        "if case \"x$p\" in *'/c'*) true;; *) false;; esac; then",
        "basename_result=\"$round/$p\"; basename_result=${basename_result##*/}",
    ];
    for shell in ["/bin/bash", "/bin/dash"] {
        // bash has shorter forms of the others.
        assert_does_the_same(shell, FORMS_OF_ANY_SHELL, &of_any_shell[if shell == "/bin/bash" { 0..1 } else { 0..4 }]);
    }
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_loop_that_became_one_call_does_the_same() {
    for shell in ["/bin/bash", "/bin/dash"] {
        assert_does_the_same(shell, LOOPS, &["touch -r .. -- *", "| xargs -r -d '\\n' chmod 600"]);
    }
}

#[apply(live_test)]
#[needs(Ebpf)]
fn launchers_that_pass_all_inputs_do_the_same() {
    let parts = ["xargs -0 md5sum", "-exec chmod 600 {} +", "sh -c 'for file; do name=${file##*/}; cksum <\"$file\" |"];
    for shell in ["/bin/bash", "/bin/dash"] {
        assert_does_the_same(shell, LAUNCHERS, &parts);
    }
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_example_is_shown_and_patched() {
    best_of_three(|| {
        let record = Record::new();
        let example = include_str!("../../../../examples/unpack.sh");
        let script = write_script(record.directory(), "unpack.sh", example);
        let command = [script.as_os_str(), "200".as_ref()];
        let before = record.run(command).expect_code(0);
        let mut advise = Command::new(SPAWNSCOPE);
        let shown = run(advise.arg("advise").arg(record.file())).expect_code(0).output();
        let lines = "     unpack.sh:20\n     - directory=$(dirname \"$path\")\n     + directory=${path%/*}\n";
        ok_if(shown.contains(lines), || shown.clone())?;
        let patch = patch_of(&record.file(), record.directory());
        apply_patch(&patch.stdout, &script);
        let after = run(Command::new(&script).arg("200")).expect_code(0);
        assert_eq!(before.output(), after.output());
        // The file has changed since the recording.
        let patch = patch_of(&record.file(), record.directory());
        assert!(patch.stdout.is_empty());
        patch.expect_errors(["unpack.sh:20: was modified after the recording began", "the patch is empty"]);
        Ok(())
    });
}

#[apply(live_test)]
#[needs(Ebpf, Make)]
fn a_variable_of_a_makefile_is_defined_once() {
    best_of_three(|| {
        let record = Record::new();
        let makefile = record.directory().join("Makefile");
        let text = "VERSION = $(shell cat VERSION | tr -d v)\nTARGETS := $(addprefix t,$(shell seq 60))\n\
                    all: $(TARGETS)\n$(TARGETS):\n\t@echo $@ $(VERSION)\n";
        fs::write(&makefile, text).expect("a makefile");
        fs::write(record.directory().join("VERSION"), "v1.2\n").expect("a file");
        let before = record.command(["make", "-s"]).current_dir(record.directory()).output().expect("a recording");
        let patch = patch_of(&record.file(), record.directory());
        ok_if(patch.output().contains("+VERSION := $(shell cat"), || patch.output() + &patch.errors())?;
        apply_patch(&patch.stdout, &makefile);
        let after = run(Command::new("make").arg("-s").current_dir(record.directory())).expect_code(0);
        assert_eq!(String::from_utf8_lossy(&before.stdout), after.output());
        Ok(())
    });
}
