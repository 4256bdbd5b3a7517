//! `advise --patch` on real recordings: the diff is applied, and the scripts do the same as before.
//! The single replacements are executed without a recording, with names that are hard to handle, by
//! `analysis/advice_both_forms.rs` and `explain/advice/edit/tests/executed.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::prelude::*;

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

/// Applies a patch, first on a copy by git, then by `patch`, if it is installed. Both change the
/// file in the same way.
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

#[apply(live_test)]
fn the_example_is_shown_and_patched() {
    best_of_three(|| {
        let record = Record::new();
        let example = include_str!("../../../../examples/unpack.sh");
        let script = write_script(record.directory(), "un pack.sh", example);
        // The name is relative, so the recorded directory is needed, too.
        let mut recorder = record.command(["./un pack.sh", "200"]);
        let before = run(recorder.current_dir(record.directory())).expect_code(0);
        let mut advise = Command::new(SPAWNSCOPE);
        let shown = run(advise.arg("advise").arg(record.file())).expect_code(0).output();
        let lines = "     un pack.sh:20\n     - directory=$(dirname \"$path\")\n     + directory=${path%/*}\n";
        ok_if(shown.contains(lines), || shown.clone())?;
        let patch = patch_of(&record.file(), record.directory());
        apply_patch(&patch.stdout, &script);
        let after = run(Command::new(&script).arg("200")).expect_code(0);
        assert_eq!(before.output(), after.output());
        // The file has changed since the recording.
        let patch = patch_of(&record.file(), record.directory());
        assert!(patch.stdout.is_empty());
        patch.expect_errors([
            "un pack.sh:20 and 1 more line: was modified after the recording began",
            "the patch is empty",
        ]);
        Ok(())
    });
}

#[apply(live_test)]
#[needs(Make)]
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
