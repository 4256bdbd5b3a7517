//! `record` as an ordinary user: without options it falls back to ptrace and says so, and set-user-id programs keep their privilege.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::run::{Finished, SPAWNSCOPE, as_nobody, run};
use crate::support::{apply, live_test};

/// A directory with a copy of the program, to which user 65534 has access.
struct PublicDirectory {
    directory: tempfile::TempDir,
}

impl PublicDirectory {
    fn new() -> PublicDirectory {
        let directory = tempfile::Builder::new()
            .tempdir_in("/tmp")
            .expect("a temporary directory");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("an open directory");
        fs::copy(SPAWNSCOPE, directory.path().join("spawnscope")).expect("a copy");
        PublicDirectory { directory }
    }

    fn spawnscope(&self, words: &[&str]) -> Finished {
        let mut command: Command = as_nobody();
        command.arg(self.directory.path().join("spawnscope")).args(words);
        command.current_dir(self.directory.path()).env_remove("LD_LIBRARY_PATH");
        run(&mut command)
    }
}

#[apply(live_test)]
#[needs(Setpriv)]
fn record_needs_no_privilege_and_says_what_is_unknown() {
    let public = PublicDirectory::new();
    let finished = public
        .spawnscope(&["record", "--", "sh", "-c", "ls / | wc -l; exit 4"])
        .expect_code(4);
    let errors = finished.errors();
    assert!(
        errors.contains("collecting with ptrace; unknown: ") && errors.contains("sudo"),
        "{errors}"
    );
    assert!(errors.contains("recorded 3 launches"), "{errors}");
    assert!(!errors.contains("replay error"), "{errors}");
}

#[apply(live_test)]
#[needs(Setpriv)]
fn features_that_need_ebpf_are_refused_with_the_reason() {
    let public = PublicDirectory::new();
    for flags in [&["record", "-a", "--duration", "1"][..], &["record", "-p", "1"]] {
        let errors = public.spawnscope(flags).expect_code(125).errors();
        assert!(errors.contains("CAP_BPF"), "{errors}");
    }
}

/// A set-user-id program of root prints its user id.
#[apply(live_test)]
#[needs(Setpriv)]
fn a_set_user_id_program_keeps_its_privilege() {
    let public = PublicDirectory::new();
    let program = public.directory.path().join("whoami");
    fs::copy("/usr/bin/id", &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a set-user-id program");
    let plain = run(as_nobody().arg(&program).arg("-u"));
    let finished = public
        .spawnscope(&["record", "--", "sh", "-c", "./whoami -u; :"])
        .expect_code(0);
    assert_eq!(finished.output(), plain.output());
    if plain.output() == "0\n" {
        assert!(
            finished.errors().contains("would lose its privilege"),
            "{}",
            finished.errors()
        );
    }
}
