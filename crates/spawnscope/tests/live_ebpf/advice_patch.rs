//! `advise --patch` on real recordings: the diff is applied, and the scripts do the same as before. The names have
//! spaces, newlines, leading dashes and patterns. The single replacements are executed without a recording, by
//! `analysis/advice_both_forms.rs` and `explain/advice/edit/tests/executed.rs`.

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
