//! Repeats the checks of script lines with the shells, makes and Perls of Debian's suites, each in
//! its own root directory: bash 5.1 to 5.3, dash 0.5.11 to 0.5.12, and zsh 5.8 to 5.9. A version
//! that is known has all lines, another one has none. `SPAWNSCOPE_TEST_BASHES` lists further
//! bashes, separated by colons. The suites' Pythons are in `python_lines`.

use crate::support::chains::{Shell, chain_of, labelled_chains};
use crate::support::needs::KNOWN_MAKES;
use crate::support::prelude::*;
use crate::support::roots::Root;
use crate::{bash_lines, dash_lines, make_lines, perl_lines, zsh_lines};

/// The latest version of bash whose arrays are known.
const LATEST_BASH: (u32, u32) = (5, 3);
/// The minor version of the latest Perl whose structures are known.
const LATEST_PERL: u32 = 42;
/// A script that prints the version of its bash.
const BASH_VERSION: &str = "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}";

#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_bash_of_every_suite_has_its_lines() {
    let listed = std::env::var_os("SPAWNSCOPE_TEST_BASHES").unwrap_or_default();
    // An unset variable gives one empty path.
    for bash in std::env::split_paths(&listed).filter(|path| path.is_absolute()) {
        println!("{}", bash.display());
        let bash = Shell::installed(&bash);
        bash_lines::CHECKS.iter().for_each(|check| check(&bash));
    }
    for root in Root::all() {
        let printed = root.run(["/bin/bash", "-c", BASH_VERSION]).expect_code(0).output();
        let (major, minor) = printed.trim().split_once('.').expect("a version");
        let version = (major.parse().expect("a number"), minor.parse().expect("a number"));
        println!("{}: bash {major}.{minor}", root.suite);
        let bash = Shell::in_root(root, "/bin/bash");
        if version <= LATEST_BASH {
            bash_lines::CHECKS.iter().for_each(|check| check(&bash));
        } else {
            assert!(!has_lines(&bash), "{bash}");
        }
    }
}

#[apply(live_test)]
#[needs(MountNs, Roots)]
fn a_static_bash_exports_nothing_and_has_no_lines() {
    for root in Root::all() {
        let bash = Shell::in_root(root, "/bin/bash-static");
        assert!(!has_lines(&bash), "{bash}");
    }
}

/// The dash of sid may be a new version whose calibration fails. Then it has no lines.
#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_dash_of_every_suite_has_its_lines() {
    for root in Root::all() {
        let dash = Shell::in_root(root, "/bin/dash");
        let is_known = root.suite != "sid" || has_lines(&dash);
        println!("{}: {}", root.suite, if is_known { "known" } else { "not known" });
        if is_known {
            dash_lines::CHECKS.iter().for_each(|check| check(&dash));
        }
    }
}

#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_busybox_of_every_suite_has_the_lines_of_its_shell() {
    for root in Root::all() {
        println!("{}", root.suite);
        let ash = Shell::in_root(root, "/bin/ash");
        dash_lines::CHECKS.iter().for_each(|check| check(&ash));
    }
}

#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_zsh_of_every_suite_has_its_lines() {
    for root in Root::all() {
        println!("{}", root.suite);
        let zsh = Shell::in_root(root, "/bin/zsh");
        zsh_lines::CHECKS.iter().for_each(|check| check(&zsh));
    }
}

/// An unknown version has no lines.
#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_perl_of_every_suite_has_its_lines() {
    for root in Root::all() {
        let perl = Shell::in_root(root, "/usr/bin/perl");
        let printed = perl.run(&["-e", "print $]"]).expect_code(0).output();
        println!("{}: perl {printed}", root.suite);
        let minor = printed.split_once('.').and_then(|(_, rest)| rest.get(..3)?.parse().ok());
        if minor.is_some_and(|minor: u32| minor <= LATEST_PERL) {
            perl_lines::CHECKS.iter().for_each(|check| check(&perl));
        } else {
            let record = Record::new();
            let script = format!("system '{}', 'own'", word("tiny"));
            perl.record(&record, &["-e", &script]).expect_code(0);
            assert_eq!(chain_of(&labelled_chains(&record.file()), "own"), "");
        }
    }
}

/// Only sid may have an unknown version.
#[apply(live_test)]
#[needs(MountNs, Roots)]
fn the_make_of_every_suite_has_its_lines() {
    for root in Root::all() {
        let make = Shell::in_root(root, "/usr/bin/make");
        let printed = make.run(&["--version"]).expect_code(0).output();
        let version = printed.lines().next().unwrap_or_default();
        println!("{}: {version}", root.suite);
        if KNOWN_MAKES.contains(&version) {
            make_lines::recipes_in_a_root(&make);
        } else {
            assert_eq!(root.suite, "sid", "{version}");
        }
    }
}

fn has_lines(shell: &Shell) -> bool {
    let record = Record::new();
    let script = format!("f() {{ {} in_f; :; }}\nf", word("tiny"));
    shell.record(&record, &["-c", &script]).expect_code(0);
    !chain_of(&labelled_chains(&record.file()), "in_f").is_empty()
}
