//! `record` as an ordinary user: what needs eBPF is refused, and set-user-id programs keep their
//! privilege. `containers.rs` tests that other recordings are made by ptrace.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::run::{PublicDirectory, as_nobody, run};
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Setpriv)]
fn features_that_need_ebpf_are_refused_with_the_reason() {
    let public = PublicDirectory::new();
    for flags in [&["record", "-a", "--duration", "1"][..], &["record", "-p", "1"]] {
        let errors = public.run(&[], flags).expect_code(125).errors();
        assert!(errors.contains("CAP_BPF"), "{errors}");
    }
}

/// A set-user-id program of root prints its user id.
#[apply(live_test)]
#[needs(Setpriv)]
fn a_set_user_id_program_keeps_its_privilege() {
    let public = PublicDirectory::new();
    let program = public.path().join("whoami");
    fs::copy("/usr/bin/id", &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).expect("a set-user-id program");
    let plain = run(as_nobody().arg(&program).arg("-u"));
    // bash executes its last command in place of itself.
    for (shell, script) in [("sh", "./whoami -u; :"), ("bash", "./whoami -u"), ("bash", "exec -a name ./whoami -u")] {
        let finished = public.run(&[], &["record", "--", shell, "-c", script]).expect_code(0);
        assert_eq!(finished.output(), plain.output(), "{shell}");
        if plain.output() == "0\n" {
            finished.expect_errors(["would lose its privilege if it were traced"]);
        }
    }
}
