//! Tests with directories that do not answer, are missing or repeated, or are links to other
//! directories; and with delays of file systems, scanners and the loader.

use std::path::PathBuf;

use spawnscope_data::event::Nanos;
use spawnscope_doctor::measure::{Scan, StuckOperation};
use spawnscope_doctor::{Basis, Measured};

use crate::directories::{tree_with_mounts, with_lookups};
use crate::tree::{
    Tree, diagnose, expect_note, expect_note_with, expect_nothing, expect_problem, expect_problem_with, scan,
    usual_measurements,
};

#[test]
fn a_directory_that_does_not_answer_is_reported_once_and_never_opened() {
    let tree = tree_with_mounts().file("net/bin/git", "").mode("net/bin/git", 0o755);
    let machine = tree.machine().with_variable("PATH", "/net/bin:/usr/bin");
    assert_eq!(machine.program("git"), Some(PathBuf::from("/net/bin/git")));
    let net = PathBuf::from("/net/bin");
    let without = machine.clone().without_directories([&net]);
    assert_eq!(without.program("git"), None);
    assert!(!without.exists("/net/bin/git") && without.bytes("/net/bin/git").is_err());
    let path = without.command("/usr/bin/git");
    let path = path.get_envs().find(|(name, _)| *name == "PATH").unwrap();
    assert_eq!(path.1.unwrap(), "/usr/bin");
    // The directory is reported as slow, not as missing.
    let measured = Measured {
        unresponsive: vec![PathBuf::from("/net/gone")],
        ..with_lookups(&[("/net/gone", None), ("/usr/bin", Some(900))])
    };
    let machine = tree.machine().with_variable("PATH", "/net/gone:/usr/bin");
    let words = ["/net/gone: no answer within 300 ms", "a network file system"];
    let finding = expect_problem_with("search-path", &machine, &measured, &words);
    assert!(finding.effect.is_some_and(|effect| effect.is_lower_bound), "{finding:?}");
    assert!(!finding.evidence.join(" ").contains("/usr/bin"), "{finding:?}");
}

#[test]
fn an_untried_directory_is_not_examined() {
    let measured = Measured { untried: vec![PathBuf::from("/gone")], ..usual_measurements() };
    let tree = tree_with_mounts();
    let machine = tree.machine().with_variable("PATH", "/gone");
    let diagnosis = diagnose("search-path", &machine, &measured);
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    assert!(diagnosis.not_examined[0].what.contains("/gone"), "{diagnosis:?}");
    // The same holds for the home directory.
    let home = tree.machine().in_directory("/home/me").with_variable("HOME", "/gone");
    let not_examined = diagnose("file-systems", &home, &measured).not_examined;
    assert!(not_examined[0].what.contains("the home directory, /gone"), "{not_examined:?}");
}

#[test]
fn many_untried_directories_are_one_entry() {
    let names: Vec<String> = (0..900).map(|number| format!("/gone/{number}")).collect();
    let measured = Measured { untried: names.iter().map(PathBuf::from).collect(), ..usual_measurements() };
    let machine = tree_with_mounts().machine().with_variable("PATH", names.join(":"));
    let diagnosis = diagnose("search-path", &machine, &measured);
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    let [not_examined] = &diagnosis.not_examined[..] else { panic!("{diagnosis:?}") };
    assert!(not_examined.what.starts_with("/gone/0, /gone/1, /gone/2 and 897 more: not tried"), "{not_examined:?}");
}

#[test]
fn without_path_the_search_is_not_examined() {
    let diagnosis = diagnose("search-path", &tree_with_mounts().machine(), &usual_measurements());
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    let [not_examined] = &diagnosis.not_examined[..] else { panic!("{diagnosis:?}") };
    assert!(not_examined.what.contains("PATH is not set"), "{not_examined:?}");
}

#[test]
fn an_empty_path_is_the_working_directory() {
    let machine = tree_with_mounts().machine().with_variable("PATH", "");
    let diagnosis = diagnose("search-path", &machine, &usual_measurements());
    let [finding] = &diagnosis.findings[..] else { panic!("{diagnosis:?}") };
    assert_eq!(finding.title, "PATH depends on the working directory");
    assert!(diagnosis.not_examined[0].what.contains("no absolute directory"), "{diagnosis:?}");
}

#[test]
fn link_loops_are_dead_and_links_to_an_earlier_directory_are_repetitions() {
    let tree = tree_with_mounts().link("circle", "circle").link("bin", "usr/bin");
    let machine = tree.machine().with_variable("PATH", "/circle:/usr/bin:/bin");
    let words = ["2 of 3 directories", "a symlink loop: /circle", "a symlink to an earlier one: /bin"];
    expect_note("search-path", &machine, &words);
}

#[test]
fn a_few_of_many_dead_directories_are_named() {
    let names: Vec<String> = (0..3000).map(|number| format!("/gone/{number}")).collect();
    let tree = tree_with_mounts();
    let machine = tree.machine().with_variable("PATH", names.join(":") + ":/usr/bin");
    let words = ["3,000 of 3,001 directories", "missing: /gone/0, /gone/1, /gone/2 and 2,997 more"];
    expect_problem("search-path", &machine, &words);
}

#[test]
fn a_temporary_directory_that_does_not_answer_is_a_problem() {
    let tree = tree_with_mounts();
    let machine =
        tree.machine().in_directory("/home/me").with_variable("TMPDIR", "/net/tmp").with_variable("HOME", "/home/me");
    let measured = Measured { unresponsive: vec![PathBuf::from("/net/tmp")], ..usual_measurements() };
    let words = ["the directory for temporary files does not answer", "nfs4"];
    expect_problem_with("file-systems", &machine, &measured, &words);
}

#[test]
fn a_useless_path_directory_is_reported_with_the_reason_and_the_lookup_time() {
    let tree = tree_with_mounts().file("usr/list", "");
    let machine = tree.machine().with_variable("PATH", "/usr/list:/gone:/usr/bin");
    let measured = with_lookups(&[("/usr/bin", Some(2_500))]);
    let words = ["missing: /gone", "not a directory: /usr/list", "finds nothing takes 2.50 us", "2 of them precede"];
    let finding = expect_note_with("search-path", &machine, &measured, &words);
    assert!(finding.title.contains("2 of 3 directories"), "{finding:?}");
    let effect = finding.effect.unwrap();
    assert_eq!((effect.span, effect.basis), (Nanos(5_000), Basis::Modelled));
    // Entries after the last useful directory only cost time in searches that find nothing.
    let after = tree.machine().with_variable("PATH", "/usr/bin:/usr/list:/gone");
    let finding = expect_note_with("search-path", &after, &measured, &["2 of 3 directories"]);
    assert_eq!(finding.effect, None);
}

#[test]
fn a_dead_and_repeated_directory_counts_once_for_each_entry() {
    let tree = tree_with_mounts().directory("bin");
    let measured = with_lookups(&[("/usr/bin", Some(1_000)), ("/bin", Some(2_000))]);
    for (path, words, ns) in [
        ("/nope:/nope:/usr/bin:/bin", ["2 of 4 directories", "missing: /nope", "repeated: /nope"], 2_000),
        (
            "/n1:/n2:/n3:/n1:/n2:/n3:/usr/bin:/bin",
            ["6 of 8 directories", "missing: /n1, /n2, /n3", "repeated: /n1, /n2, /n3"],
            6_000,
        ),
    ] {
        let machine = tree.machine().with_variable("PATH", path);
        let finding = expect_note_with("search-path", &machine, &measured, &words);
        assert_eq!(finding.effect.unwrap().span, Nanos(ns));
    }
    let gone = "/n1:/n2:/n3:/n4:".repeat(2) + "/usr/bin";
    let machine = tree.machine().with_variable("PATH", gone);
    let words = ["8 of 9 directories"];
    expect_problem_with("search-path", &machine, &measured, &words);
}

#[test]
fn the_temporary_directory_may_be_a_link_or_a_relative_path() {
    let tree = tree_with_mounts().directory("net/tmp").link("scratch", "net/tmp");
    let machine = tree.machine().in_directory("/home/me");
    let temporary = "the directory for temporary files is on a network file system";
    for (machine, directory) in [(machine.clone(), "/scratch"), (machine.in_directory("/net/tmp/.."), "tmp")] {
        let machine = machine.with_variable("TMPDIR", directory);
        let diagnosis = diagnose("file-systems", &machine, &usual_measurements());
        let titles: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.title.as_str()).collect();
        assert!(titles.contains(&temporary), "{directory}: {titles:?}");
    }
}

#[test]
fn delays_of_a_remote_file_system_are_not_blamed_on_a_scanner() {
    let tree = tree_with_mounts();
    let machine = tree.machine().in_directory("/home/me").with_variable("TMPDIR", "/net");
    let measured = Measured { remote_scan: Some(scan(21, 11, &[])), ..usual_measurements() };
    let words = ["on a network file system", "later launches 11.0 ms, from memory 1.00 ms"];
    let finding = expect_problem_with("file-systems", &machine, &measured, &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(10_000_000));
    expect_nothing("scanners", &Tree::new().machine(), &measured);
    let only_remote = Measured { scan: None, ..measured };
    let diagnosis = diagnose("scanners", &Tree::new().machine(), &only_remote);
    assert!(diagnosis.findings.is_empty() && diagnosis.not_examined.len() == 1, "{diagnosis:?}");
}

#[test]
fn files_that_cannot_be_created_in_time_are_blamed_on_a_scanner() {
    let measured = Measured {
        scan: Some(Scan { stuck: Some(StuckOperation::Creation(Nanos(800_000_000))), ..Scan::default() }),
        ..usual_measurements()
    };
    let words = ["new files cannot be written", "could not even be created within 800 ms"];
    expect_problem_with("scanners", &Tree::new().machine(), &measured, &words);
}

#[test]
fn an_abandoned_launch_with_loader_variables_has_a_lower_bound() {
    let tree = tree_with_mounts();
    let machine = tree.machine().with_variable("LD_BIND_NOW", "1");
    let mut measured = Measured {
        exec_dynamic_abandoned_after: Some(Nanos(300_000_000)),
        without_loader_variables: Some(Nanos(1_000_000)),
        ..usual_measurements()
    };
    measured.launch.exec_dynamic = None;
    let words = ["more than 300 ms with LD_BIND_NOW, 1.00 ms without"];
    let effect = expect_problem_with("loader-environment", &machine, &measured, &words).effect.unwrap();
    assert!(effect.is_lower_bound && effect.span == Nanos(299_000_000), "{effect:?}");
}
