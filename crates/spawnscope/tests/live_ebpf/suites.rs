//! Shells, makes and Perls of Debian's suites, from bash 5.1 to 5.3 and dash 0.5.11 to 0.5.12, each in its own root: every shape has its lines, or none
//! at all. `SPAWNSCOPE_TEST_BASHES` names further ones, separated by colons. The suites' Pythons are in `python_lines`.

use crate::support::chains::{Shell, labelled_chains, chain_of};
use crate::support::roots::Root;
use crate::support::run::Record;
use crate::support::workloads::path;
use crate::support::{apply, live_test};
use crate::{bash_lines, dash_lines, make_lines, perl_lines};

/// The latest whose arrays are known, and what prints that of a bash.
const LATEST_BASH: (u32, u32) = (5, 3);
/// The minor version of the latest Perl whose structures are known.
const LATEST_PERL: u32 = 42;
const BASH_VERSION: &str = "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}";

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Roots)]
fn every_suites_bash_has_its_lines() {
    let named = std::env::var_os("SPAWNSCOPE_TEST_BASHES").unwrap_or_default();
    // Unset is one empty path.
    for bash in std::env::split_paths(&named).filter(|path| path.is_absolute()) {
        println!("{}", bash.display());
        bash_lines::SHAPES.iter().for_each(|shape| shape(&Shell::installed(&bash)));
    }
    for root in Root::all() {
        let said = root.run(["/bin/bash", "-c", BASH_VERSION]).expect_code(0).output();
        let (major, minor) = said.trim().split_once('.').expect("a version");
        let version = (major.parse().expect("a number"), minor.parse().expect("a number"));
        println!("{}: bash {major}.{minor}", root.suite);
        let bash = Shell::within(root, "/bin/bash");
        if version <= LATEST_BASH {
            bash_lines::SHAPES.iter().for_each(|shape| shape(&bash));
        } else {
            assert!(!has_lines(&bash), "{bash}");
        }
    }
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Roots)]
fn a_static_bash_which_exports_nothing_has_no_lines() {
    for root in Root::all() {
        let bash = Shell::within(root, "/bin/bash-static");
        assert!(!has_lines(&bash), "{bash}");
    }
}

/// That of sid may be a new one, which is not known where it cannot be run.
#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Roots)]
fn every_suites_dash_has_its_lines() {
    for root in Root::all() {
        let dash = Shell::within(root, "/bin/dash");
        let is_known = root.suite != "sid" || has_lines(&dash);
        println!("{}: {}", root.suite, if is_known { "known" } else { "not known" });
        if is_known {
            dash_lines::SHAPES.iter().for_each(|shape| shape(&dash));
        }
    }
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Roots)]
fn every_suites_busybox_has_the_lines_of_its_shell() {
    for root in Root::all() {
        println!("{}", root.suite);
        let ash = Shell::within(root, "/bin/ash");
        dash_lines::SHAPES.iter().for_each(|shape| shape(&ash));
    }
}

/// A version that is not known has no lines.
#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Roots)]
fn every_suites_perl_has_its_lines() {
    for root in Root::all() {
        let perl = Shell::within(root, "/usr/bin/perl");
        let said = perl.run(&["-e", "print $]"]).expect_code(0).output();
        println!("{}: perl {said}", root.suite);
        let minor: u32 = said
            .split_once('.')
            .and_then(|(_, rest)| rest.get(..3)?.parse().ok())
            .expect("a version");
        if minor <= LATEST_PERL {
            perl_lines::SHAPES.iter().for_each(|shape| shape(&perl));
        } else {
            let record = Record::new();
            let script = format!("system '{}', 'own'", path("tiny").display());
            perl.record(&record, &["-e", &script]).expect_code(0);
            assert_eq!(chain_of(&labelled_chains(&record.file()), "own"), "");
        }
    }
}

/// A version that is not known has no lines.
#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Roots)]
fn every_suites_make_has_its_lines() {
    for root in Root::all() {
        let make = Shell::within(root, "/usr/bin/make");
        let said = make.run(&["--version"]).expect_code(0).output();
        let version = said.lines().next().unwrap_or_default();
        println!("{}: {version}", root.suite);
        if ["GNU Make 4.3", "GNU Make 4.4.1"].contains(&version) {
            make_lines::recipes_in_a_root(&make);
        } else {
            assert_eq!(root.suite, "sid", "{version}");
        }
    }
}

fn has_lines(shell: &Shell) -> bool {
    let record = Record::new();
    let script = format!("f() {{ {} in_f; :; }}\nf", path("tiny").display());
    shell.record(&record, &["-c", &script]).expect_code(0);
    !chain_of(&labelled_chains(&record.file()), "in_f").is_empty()
}
