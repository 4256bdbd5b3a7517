//! Directories that are slow, silent, closed, or elsewhere than their path suggests; and delays that are not caused by a scanner.

use std::path::PathBuf;

use spawnscope_data::event::Nanos;
use spawnscope_doctor::measure::{Scan, Stuck};
use spawnscope_doctor::{Basis, Machine, Measured, Severity};

use crate::attempts::best_of_three;
use crate::directories::{directories, looked_up};
use crate::tree::{Tree, diagnose, expect, only, scan, silent, usual};

#[test]
fn a_directory_that_does_not_answer_is_reported_once_and_never_opened() {
    let tree = directories().file("net/bin/git", "").mode("net/bin/git", 0o755);
    let machine = tree.machine().with_variable("PATH", "/net/bin:/usr/bin");
    assert_eq!(machine.program("git"), Some(PathBuf::from("/net/bin/git")));
    let net = PathBuf::from("/net/bin");
    let without = machine.clone().without_directories([&net]);
    assert_eq!(without.program("git"), None);
    assert!(!without.exists("/net/bin/git") && without.bytes("/net/bin/git").is_err());
    let path = without.command("/usr/bin/git");
    let path = path.get_envs().find(|(name, _)| *name == "PATH").unwrap();
    assert_eq!(path.1.unwrap(), "/usr/bin");
    // It is unknown, not missing.
    let measured = Measured {
        unresponsive: vec![PathBuf::from("/net/gone")],
        ..looked_up(&[("/net/gone", None), ("/usr/bin", Some(900))])
    };
    let machine = tree.machine().with_variable("PATH", "/net/gone:/usr/bin");
    let words = ["/net/gone: no answer within 300 ms", "a network file system"];
    let finding = only("search-path", &machine, &measured, Severity::Problem, &words);
    assert!(
        finding.effect.is_some_and(|effect| effect.is_lower_bound),
        "{finding:?}"
    );
    assert!(!finding.evidence.join(" ").contains("/usr/bin"), "{finding:?}");
}

#[test]
fn a_directory_that_does_not_answer_is_unseen() {
    let measured = Measured {
        untried: vec![PathBuf::from("/gone")],
        ..usual()
    };
    let tree = directories();
    let machine = tree.machine().with_variable("PATH", "/gone");
    let diagnosis = diagnose("search-path", &machine, &measured);
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    assert!(diagnosis.not_examined[0].what.contains("/gone"), "{diagnosis:?}");
    // Whether it would answer is unknown.
    let home = tree.machine().in_directory("/home/me").with_variable("HOME", "/gone");
    let not_examined = diagnose("file-systems", &home, &measured).not_examined;
    assert!(
        not_examined[0].what.contains("the home directory, /gone"),
        "{not_examined:?}"
    );
}

#[test]
fn many_directories_that_do_not_answer_are_one_entry() {
    let names: Vec<String> = (0..900).map(|number| format!("/gone/{number}")).collect();
    let measured = Measured {
        untried: names.iter().map(PathBuf::from).collect(),
        ..usual()
    };
    let machine = directories().machine().with_variable("PATH", names.join(":"));
    let diagnosis = diagnose("search-path", &machine, &measured);
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    let [not_examined] = &diagnosis.not_examined[..] else {
        panic!("{diagnosis:?}")
    };
    assert!(
        not_examined.what.contains("900 directories of PATH") && not_examined.what.contains("/gone/0"),
        "{not_examined:?}"
    );
}

#[test]
fn without_a_path_the_search_is_unseen() {
    let diagnosis = diagnose("search-path", &directories().machine(), &usual());
    assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
    let [not_examined] = &diagnosis.not_examined[..] else {
        panic!("{diagnosis:?}")
    };
    assert!(not_examined.what.contains("PATH is not set"), "{not_examined:?}");
}

#[test]
fn an_empty_path_is_the_working_directory() {
    let machine = directories().machine().with_variable("PATH", "");
    let diagnosis = diagnose("search-path", &machine, &usual());
    let [finding] = &diagnosis.findings[..] else {
        panic!("{diagnosis:?}")
    };
    assert_eq!(finding.title, "PATH depends on the working directory");
    assert!(
        diagnosis.not_examined[0].what.contains("no absolute directory"),
        "{diagnosis:?}"
    );
}

#[test]
fn links_in_a_circle_are_dead_and_links_to_a_directory_repeat_it() {
    let tree = directories().link("circle", "circle").link("bin", "usr/bin");
    let machine = tree.machine().with_variable("PATH", "/circle:/usr/bin:/bin");
    let words = [
        "2 of 3 directories",
        "a symlink loop: /circle",
        "a symlink to an earlier one: /bin",
    ];
    only("search-path", &machine, &usual(), Severity::Note, &words);
}

#[test]
fn of_many_dead_directories_a_few_are_named() {
    let names: Vec<String> = (0..3000).map(|number| format!("/gone/{number}")).collect();
    let tree = directories();
    let machine = tree.machine().with_variable("PATH", names.join(":") + ":/usr/bin");
    let words = [
        "3,000 of 3,001 directories",
        "missing: /gone/0, /gone/1, /gone/2 and 2,997 more",
    ];
    only("search-path", &machine, &usual(), Severity::Problem, &words);
}

#[test]
fn dead_directories_in_front_leave_time_to_ask_those_behind_them() {
    let names: Vec<String> = (0..3000).map(|number| format!("/gone/{number}")).collect();
    let machine = Machine::with_root("/").with_variable("PATH", names.join(":") + ":/usr/bin");
    best_of_three(|| {
        let measured = Measured::take(&machine);
        let is_asked = measured
            .lookups
            .iter()
            .any(|(directory, time)| directory.ends_with("usr/bin") && time.is_some());
        expect(
            is_asked && measured.untried.is_empty(),
            (measured.untried.len(), measured.lookups),
        )
    });
}

#[test]
fn places_that_do_not_answer_are_problems() {
    let tree = directories();
    let machine = tree
        .machine()
        .in_directory("/home/me")
        .with_variable("TMPDIR", "/net/tmp")
        .with_variable("HOME", "/home/me");
    let measured = Measured {
        unresponsive: vec![PathBuf::from("/net/tmp")],
        ..usual()
    };
    let words = ["the directory for temporary files does not answer", "nfs4"];
    only("file-systems", &machine, &measured, Severity::Problem, &words);
}

#[test]
fn a_useless_path_directory_is_reported_with_the_reason_and_the_lookup_time() {
    let tree = directories().file("usr/list", "");
    let machine = tree.machine().with_variable("PATH", "/usr/list:/gone:/usr/bin");
    let measured = looked_up(&[("/usr/bin", Some(2_500))]);
    let words = [
        "missing: /gone",
        "not a directory: /usr/list",
        "finds nothing takes 2.50 us",
        "2 of them precede",
    ];
    let finding = only("search-path", &machine, &measured, Severity::Note, &words);
    assert!(finding.title.contains("2 of 3 directories"), "{finding:?}");
    let effect = finding.effect.unwrap();
    assert_eq!((effect.span, effect.basis), (Nanos(5_000), Basis::Modelled));
    // Entries after the last useful directory only cost time in searches that find nothing.
    let behind = tree.machine().with_variable("PATH", "/usr/bin:/usr/list:/gone");
    let finding = only(
        "search-path",
        &behind,
        &measured,
        Severity::Note,
        &["2 of 3 directories"],
    );
    assert_eq!(finding.effect, None);
}

#[test]
fn a_directory_that_is_dead_and_repeated_counts_once_for_each_time_it_is_named() {
    let tree = directories().directory("bin");
    let measured = looked_up(&[("/usr/bin", Some(1_000)), ("/bin", Some(2_000))]);
    let finding_of = |path: &str, words: &[&str]| {
        let machine = tree.machine().with_variable("PATH", path);
        only("search-path", &machine, &measured, Severity::Note, words)
    };
    let words = ["2 of 4 directories", "missing: /nope", "repeated: /nope"];
    let finding = finding_of("/nope:/nope:/usr/bin:/bin", &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(2_000));
    let words = [
        "6 of 8 directories",
        "missing: /n1, /n2, /n3",
        "repeated: /n1, /n2, /n3",
    ];
    let finding = finding_of("/n1:/n2:/n3:/n1:/n2:/n3:/usr/bin:/bin", &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(6_000));
    let gone = "/n1:/n2:/n3:/n4:".repeat(2) + "/usr/bin";
    let machine = tree.machine().with_variable("PATH", gone);
    let words = ["8 of 9 directories"];
    only("search-path", &machine, &measured, Severity::Problem, &words);
}

#[test]
fn temporary_files_are_where_links_and_the_working_directory_say() {
    let tree = directories().directory("net/tmp").link("scratch", "net/tmp");
    let machine = tree.machine().in_directory("/home/me");
    let temporary = "the directory for temporary files is on a network file system";
    for (machine, directory) in [
        (machine.clone(), "/scratch"),
        (machine.in_directory("/net/tmp/.."), "tmp"),
    ] {
        let machine = machine.with_variable("TMPDIR", directory);
        let diagnosis = diagnose("file-systems", &machine, &usual());
        let titles: Vec<&str> = diagnosis
            .findings
            .iter()
            .map(|finding| finding.title.as_str())
            .collect();
        assert!(titles.contains(&temporary), "{directory}: {titles:?}");
    }
}

#[test]
fn delays_of_a_remote_file_system_are_not_those_of_a_scanner() {
    let tree = directories();
    let machine = tree.machine().in_directory("/home/me").with_variable("TMPDIR", "/net");
    let measured = Measured {
        remote_scan: Some(scan(21, 11, &[])),
        ..usual()
    };
    let words = ["on a network file system", "second launch 11.0 ms, from memory 1.00 ms"];
    let finding = only("file-systems", &machine, &measured, Severity::Problem, &words);
    assert_eq!(finding.effect.unwrap().span, Nanos(10_000_000));
    silent("scanners", &Tree::new().machine(), &measured);
    let only_there = Measured { scan: None, ..measured };
    let diagnosis = diagnose("scanners", &Tree::new().machine(), &only_there);
    assert!(
        diagnosis.findings.is_empty() && diagnosis.not_examined.len() == 1,
        "{diagnosis:?}"
    );
}

#[test]
fn marks_that_hold_nothing_up_here_are_a_note() {
    let tree = Tree::new()
        .process(7, 1, "guard", 1)
        .link("proc/7/fd/3", "anon_inode:[fanotify]")
        .file(
            "proc/7/fdinfo/3",
            "fanotify mnt_id:12 mflags:0 mask:10000 ignored_mask:0\n",
        );
    only(
        "scanners",
        &tree.machine(),
        &usual(),
        Severity::Note,
        &["guard (process 7)"],
    );
}

#[test]
fn files_that_cannot_even_be_created_are_held_up() {
    let measured = Measured {
        scan: Some(Scan {
            stuck: Some(Stuck::Creation(Nanos(800_000_000))),
            ..Scan::default()
        }),
        ..usual()
    };
    let words = ["new files cannot be written", "could not even be created within 800 ms"];
    only("scanners", &Tree::new().machine(), &measured, Severity::Problem, &words);
}

#[test]
fn a_program_that_outlasts_the_doctor_with_its_variables_is_reported_with_a_lower_bound() {
    let tree = directories();
    let machine = tree.machine().with_variable("LD_BIND_NOW", "1");
    let mut measured = Measured {
        exec_dynamic_abandoned_after: Some(Nanos(300_000_000)),
        without_loader_variables: Some(Nanos(1_000_000)),
        ..usual()
    };
    measured.launch.exec_dynamic = None;
    let words = ["more than 300 ms with them, 1.00 ms without"];
    let effect = only("loader-environment", &machine, &measured, Severity::Problem, &words)
        .effect
        .unwrap();
    assert!(effect.is_lower_bound && effect.span == Nanos(299_000_000), "{effect:?}");
}
