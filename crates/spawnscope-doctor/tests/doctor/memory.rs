//! Large processes, and whether a fork of them would be slow, or refused for lack of memory.

use spawnscope_data::event::Nanos;
use spawnscope_doctor::Severity;

use crate::tree::{Tree, diagnose, only, silent, usual};

/// A machine without any huge pages.
fn with(process: &str, mebibytes: u64) -> Tree {
    Tree::new()
        .process(10, 1, process, mebibytes)
        .process(11, 1, "bash", 2)
        .file("proc/meminfo", "MemTotal: 8000000 kB\nAnonHugePages:         0 kB\n")
}

#[test]
fn large_processes_have_the_cost_of_a_fork_and_children_prove_no_forks() {
    let alone = with("server", 4096);
    let words = ["server (process 10)", "123 ms for a fork", "0 children"];
    let finding = only("large-parents", &alone.machine(), &usual(), Severity::Note, &words);
    // 20 and 10 us for each MiB.
    assert_eq!(finding.effect.unwrap().span, Nanos(122_880_000));
    // As by posix_spawn.
    let launching = with("python3", 4096).process(12, 10, "git", 2);
    let words = ["1 child", "whether they fork is unknown", "posix_spawn"];
    only("large-parents", &launching.machine(), &usual(), Severity::Note, &words);
}

#[test]
fn shells_that_launch_fork_and_each_process_is_judged_by_itself() {
    for (name, program) in [
        ("bash", "/usr/bin/bash"),
        ("build", "/usr/bin/perl"),
        ("zsh", "/bin/zsh (deleted)"),
    ] {
        let shell = with(name, 4096).link("proc/10/exe", program);
        let words = [name, "0 children"];
        only("large-parents", &shell.machine(), &usual(), Severity::Note, &words);
        // A database as well, which was not seen to launch anything.
        let launching = shell.process(12, 10, "git", 2).process(13, 1, "mysqld", 5000);
        let findings = diagnose("large-parents", &launching.machine(), &usual()).findings;
        let [problem, note] = &findings[..] else {
            panic!("{findings:#?}")
        };
        assert_eq!(problem.severity, Severity::Problem);
        assert!(
            problem.title.starts_with(name) && problem.evidence[0].contains("1 child now"),
            "{problem:?}"
        );
        assert_eq!(problem.effect.unwrap().span, Nanos(122_880_000));
        assert!(!format!("{problem:?}").contains("mysqld"), "{problem:?}");
        assert_eq!(note.severity, Severity::Note);
        assert!(
            note.evidence[0].contains("mysqld") && !format!("{note:?}").contains(name),
            "{note:?}"
        );
    }
    // A script with that name is not a shell.
    let other = with("bash", 4096)
        .link("proc/10/exe", "/usr/bin/python3.11")
        .process(12, 10, "git", 2);
    only("large-parents", &other.machine(), &usual(), Severity::Note, &[]);
}

#[test]
fn huge_pages_are_advised_where_they_can_be_had() {
    let library = |version: &str| format!("stable release version {version}.\n");
    let parts = |modes: &str, version: &str| {
        with("server", 4096)
            .file("sys/kernel/mm/transparent_hugepage/enabled", modes)
            .file("lib/x86_64-linux-gnu/libc.so.6", library(version))
    };
    let fix = |tree: &Tree| {
        only("large-parents", &tree.machine(), &usual(), Severity::Note, &[])
            .fix
            .join(" ")
    };
    let tunable = "glibc.malloc.hugetlb=1";
    assert!(fix(&parts("always [madvise] never", "2.35")).contains(tunable));
    let old = fix(&parts("always [madvise] never", "2.34"));
    assert!(!old.contains(tunable) && old.contains("MADV_HUGEPAGE"), "{old}");
    let never = fix(&parts("always madvise [never]", "2.36"));
    assert!(!never.contains(tunable) && never.contains("disabled"), "{never}");
    let missing = with("server", 4096).file("lib/x86_64-linux-gnu/libc.so.6", library("2.36"));
    for tree in [parts("[always] madvise never", "2.36"), missing] {
        assert!(!fix(&tree).contains("huge"), "{}", fix(&tree));
    }
}

#[test]
fn a_fork_costs_what_its_pages_cost_at_best_since_a_busy_machine_only_adds() {
    let machine = with("server", 1024);
    let mut measured = usual();
    for constant in &mut measured.constants {
        constant.low_ns = Some(constant.ns / 10.0);
    }
    silent("large-parents", &machine.machine(), &measured);
    only(
        "large-parents",
        &machine.machine(),
        &usual(),
        Severity::Note,
        &["server"],
    );
}

/// With this many huge pages, in kB, of all processes and of the process itself.
fn with_huge(process: &str, mebibytes: u64, all: u64, own: u64) -> Tree {
    Tree::new()
        .process(10, 1, process, mebibytes)
        .process(12, 10, "git", 2)
        .file("proc/meminfo", format!("AnonHugePages: {all:9} kB\n"))
        .file(
            "proc/10/smaps_rollup",
            format!("Rss: 1 kB\nAnonHugePages: {own:9} kB\n"),
        )
}

#[test]
fn memory_in_huge_pages_and_small_processes_are_silent() {
    let huge = with_huge("server", 1000, 1_024_000, 1_024_000);
    silent("large-parents", &huge.machine(), &usual());
    silent("large-parents", &with("server", 100).machine(), &usual());
}

#[test]
fn memory_that_cannot_be_examined_quickly_has_an_upper_bound() {
    // The kernel would walk all of it.
    let large = with_huge("bash", 4096, 4_194_304, 4_194_304);
    only(
        "large-parents",
        &large.machine(),
        &usual(),
        Severity::Note,
        &["at most 123 ms"],
    );
    // Enough of it is in small pages in any case.
    let large = with_huge("bash", 4096, 1_048_576, 0);
    let finding = only(
        "large-parents",
        &large.machine(),
        &usual(),
        Severity::Problem,
        &["at most 123 ms"],
    );
    assert_eq!(finding.effect.unwrap().span, Nanos(92_160_000));
    // A process whose memory lock is held: reading its file hangs.
    let locked = with_huge("server", 1000, 1_024_000, 0);
    let file = locked.root().join("proc/10/smaps_rollup");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    only(
        "large-parents",
        &locked.machine(),
        &usual(),
        Severity::Note,
        &["at most 30.0 ms"],
    );
}

fn memory(mode: u32) -> Tree {
    Tree::new()
        .process(10, 1, "server", 4096)
        .file("proc/sys/vm/overcommit_memory", format!("{mode}\n"))
        .file(
            "proc/meminfo",
            "MemTotal:        8000000 kB\nSwapTotal:             0 kB\nCommitLimit:     6000000 kB\nCommitted_AS:    5000000 kB\n",
        )
}

#[test]
fn a_fork_that_would_not_be_given_its_memory_is_a_problem() {
    let words = ["server (process 10)", "vm.overcommit_memory is 2", "ENOMEM"];
    only("overcommit", &memory(2).machine(), &usual(), Severity::Problem, &words);
    silent("overcommit", &memory(0).machine(), &usual());
    silent("overcommit", &memory(1).machine(), &usual());
    assert_eq!(
        diagnose("overcommit", &Tree::new().machine(), &usual())
            .not_examined
            .len(),
        1
    );
}

/// Mode 0 checks each mapping separately, and ignores memory without reserve, of which sanitizers map terabytes.
#[test]
fn the_guessing_mode_refuses_only_a_mapping_larger_than_the_machine() {
    let vast = |mappings: &[(u64, &str)]| {
        let text = mappings.iter().map(|(kibibytes, flags)| {
            format!("7f0000000000-7f1000000000 rw-p 00000000 00:00 0\nSize: {kibibytes:14} kB\nRss:  10 kB\nVmFlags: {flags}\n")
        });
        memory(0)
            .process(11, 1, "sparse", 20_000)
            .resident(11, 10)
            .file("proc/11/smaps", text.collect::<String>())
    };
    let words = ["sparse (process 11)", "vm.overcommit_memory is 0", "needs 20.5 GB"];
    let refused = vast(&[(20_000_000, "rd wr mr mw me ac sd")]);
    only("overcommit", &refused.machine(), &usual(), Severity::Problem, &words);
    let unreserved = vast(&[(20_000_000, "rd wr mr mw me nr sd")]);
    silent("overcommit", &unreserved.machine(), &usual());
    let many = vast(&[(7_000_000, "rd wr mr mw me ac sd"); 3]);
    silent("overcommit", &many.machine(), &usual());
    // One whose memory lock is held, and one that would take the kernel long to walk.
    let locked = vast(&[]);
    let file = locked.root().join("proc/11/smaps");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let large = vast(&[(20_000_000, "rd wr mr mw me ac sd")]).resident(11, 2048);
    for tree in [locked, large] {
        let diagnosis = diagnose("overcommit", &tree.machine(), &usual());
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(
            diagnosis.not_examined[0].what.contains("fork of 1 process"),
            "{diagnosis:?}"
        );
    }
}
