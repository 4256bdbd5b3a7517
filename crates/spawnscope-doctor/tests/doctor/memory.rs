//! Tests of the checks `large-parents` and `overcommit`: processes whose fork would be slow, or refused for lack of memory.

use spawnscope_data::event::Nanos;
use spawnscope_doctor::Severity;

use crate::tree::{Tree, diagnose, expect_finding, expect_nothing, fix, usual_measurements};

/// Returns a machine with a process of this size, and without any huge pages.
fn with_process(process: &str, mebibytes: u64) -> Tree {
    Tree::new()
        .process(10, 1, process, mebibytes)
        .process(11, 1, "bash", 2)
        .file("proc/meminfo", "MemTotal: 8000000 kB\nAnonHugePages:         0 kB\n")
}

#[test]
fn the_fork_of_a_large_process_is_a_note_even_if_it_has_children() {
    let alone = with_process("server", 4096);
    let words = ["server (process 10)", "123 ms for a fork", "0 children"];
    let finding = expect_finding("large-parents", &alone.machine(), &usual_measurements(), Severity::Note, &words);
    // Copying page tables takes 20 us for each MiB, and freeing them 10 us.
    assert_eq!(finding.effect.unwrap().span, Nanos(122_880_000));
    // The child may have been launched by posix_spawn.
    let launching = with_process("python3", 4096).process(12, 10, "git", 2);
    let words = ["1 child", "whether they fork is unknown", "posix_spawn"];
    expect_finding("large-parents", &launching.machine(), &usual_measurements(), Severity::Note, &words);
}

#[test]
fn shells_with_children_are_known_to_fork_and_other_processes_are_not() {
    for (name, program) in [("bash", "/usr/bin/bash"), ("build", "/usr/bin/perl"), ("zsh", "/bin/zsh (deleted)")] {
        let shell = with_process(name, 4096).link("proc/10/exe", program);
        let words = [name, "0 children"];
        expect_finding("large-parents", &shell.machine(), &usual_measurements(), Severity::Note, &words);
        // There is also a database without children.
        let launching = shell.process(12, 10, "git", 2).process(13, 1, "mysqld", 5000);
        let findings = diagnose("large-parents", &launching.machine(), &usual_measurements()).findings;
        let [problem, note] = &findings[..] else { panic!("{findings:#?}") };
        assert_eq!(problem.severity, Severity::Problem);
        assert!(problem.title.starts_with(name) && problem.evidence[0].contains("1 child now"), "{problem:?}");
        assert_eq!(problem.effect.unwrap().span, Nanos(122_880_000));
        assert!(!format!("{problem:?}").contains("mysqld"), "{problem:?}");
        assert_eq!(note.severity, Severity::Note);
        assert!(note.evidence[0].contains("mysqld") && !format!("{note:?}").contains(name), "{note:?}");
    }
    // A Python script with the name of a shell is not a shell.
    let script = with_process("bash", 4096).link("proc/10/exe", "/usr/bin/python3.11").process(12, 10, "git", 2);
    expect_finding("large-parents", &script.machine(), &usual_measurements(), Severity::Note, &[]);
}

fn with_library(version: &str) -> Tree {
    let library = format!("stable release version {version}.\n");
    with_process("server", 4096).file("lib/x86_64-linux-gnu/libc.so.6", library)
}

#[test]
fn huge_pages_are_advised_if_they_are_available() {
    let modes = "sys/kernel/mm/transparent_hugepage/enabled";
    let tunable = "glibc.malloc.hugetlb=1";
    let new = fix("large-parents", &with_library("2.35").file(modes, "always [madvise] never"));
    assert!(new.contains(tunable), "{new}");
    let old = fix("large-parents", &with_library("2.34").file(modes, "always [madvise] never"));
    assert!(!old.contains(tunable) && old.contains("MADV_HUGEPAGE"), "{old}");
    let never = fix("large-parents", &with_library("2.36").file(modes, "always madvise [never]"));
    assert!(!never.contains(tunable) && never.contains("disabled"), "{never}");
    for tree in [with_library("2.36").file(modes, "[always] madvise never"), with_library("2.36")] {
        let fix = fix("large-parents", &tree);
        assert!(!fix.contains("huge"), "{fix}");
    }
}

#[test]
fn the_lower_bound_of_page_times_counts_because_load_only_adds_time() {
    let machine = with_process("server", 1024);
    let mut measured = usual_measurements();
    for constant in &mut measured.constants {
        constant.low_ns = Some(constant.ns / 10.0);
    }
    expect_nothing("large-parents", &machine.machine(), &measured);
    expect_finding("large-parents", &machine.machine(), &usual_measurements(), Severity::Note, &["server"]);
}

/// Returns a machine with a process, and with huge pages of `all` kB on the whole machine, `own` kB of them in the process.
fn with_huge_pages(process: &str, mebibytes: u64, all: u64, own: u64) -> Tree {
    Tree::new()
        .process(10, 1, process, mebibytes)
        .process(12, 10, "git", 2)
        .file("proc/meminfo", format!("AnonHugePages: {all:9} kB\n"))
        .file("proc/10/smaps_rollup", format!("Rss: 1 kB\nAnonHugePages: {own:9} kB\n"))
}

#[test]
fn memory_in_huge_pages_and_small_processes_have_no_findings() {
    let huge = with_huge_pages("server", 1000, 1_024_000, 1_024_000);
    expect_nothing("large-parents", &huge.machine(), &usual_measurements());
    expect_nothing("large-parents", &with_process("server", 100).machine(), &usual_measurements());
}

#[test]
fn memory_that_cannot_be_examined_quickly_has_an_upper_bound() {
    // The process is too large to read its file, and all its memory may be in huge pages.
    let large = with_huge_pages("bash", 4096, 4_194_304, 4_194_304);
    expect_finding("large-parents", &large.machine(), &usual_measurements(), Severity::Note, &["at most 123 ms"]);
    // The machine has few huge pages, so most of the memory is in small pages.
    let large = with_huge_pages("bash", 4096, 1_048_576, 0);
    let finding = expect_finding(
        "large-parents",
        &large.machine(),
        &usual_measurements(),
        Severity::Problem,
        &["at most 123 ms"],
    );
    assert_eq!(finding.effect.unwrap().span, Nanos(92_160_000));
    // A FIFO stands for the file of a process whose mmap lock is taken: reading it hangs.
    let locked = with_huge_pages("server", 1000, 1_024_000, 0);
    let file = locked.root().join("proc/10/smaps_rollup");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    expect_finding("large-parents", &locked.machine(), &usual_measurements(), Severity::Note, &["at most 30.0 ms"]);
}

fn with_overcommit_mode(mode: u32) -> Tree {
    Tree::new()
        .process(10, 1, "server", 4096)
        .file("proc/sys/vm/overcommit_memory", format!("{mode}\n"))
        .file(
            "proc/meminfo",
            "MemTotal:        8000000 kB\nSwapTotal:             0 kB\nCommitLimit:     6000000 kB\nCommitted_AS:    5000000 kB\n",
        )
}

#[test]
fn a_fork_that_cannot_commit_its_memory_is_a_problem() {
    let words = ["server (process 10)", "vm.overcommit_memory is 2", "ENOMEM"];
    expect_finding("overcommit", &with_overcommit_mode(2).machine(), &usual_measurements(), Severity::Problem, &words);
    expect_nothing("overcommit", &with_overcommit_mode(0).machine(), &usual_measurements());
    expect_nothing("overcommit", &with_overcommit_mode(1).machine(), &usual_measurements());
    assert_eq!(diagnose("overcommit", &Tree::new().machine(), &usual_measurements()).not_examined.len(), 1);
}

/// Returns a machine with a process that has these mappings: the size of each in kB, and its flags.
fn vast(mappings: &[(u64, &str)]) -> Tree {
    let text = mappings.iter().map(|(kibibytes, flags)| {
        format!(
            "7f0000000000-7f1000000000 rw-p 00000000 00:00 0\nSize: {kibibytes:14} kB\nRss:  10 kB\nVmFlags: {flags}\n"
        )
    });
    with_overcommit_mode(0)
        .process(11, 1, "sparse", 20_000)
        .resident(11, 10)
        .file("proc/11/smaps", text.collect::<String>())
}

/// Mode 0 checks each mapping separately, and ignores mappings with MAP_NORESERVE, such as the terabytes that sanitizers map.
#[test]
fn the_heuristic_mode_refuses_only_a_mapping_larger_than_memory_and_swap() {
    let words = ["sparse (process 11)", "vm.overcommit_memory is 0", "needs 20.5 GB"];
    let refused = vast(&[(20_000_000, "rd wr mr mw me ac sd")]);
    expect_finding("overcommit", &refused.machine(), &usual_measurements(), Severity::Problem, &words);
    let unreserved = vast(&[(20_000_000, "rd wr mr mw me nr sd")]);
    expect_nothing("overcommit", &unreserved.machine(), &usual_measurements());
    let many = vast(&[(7_000_000, "rd wr mr mw me ac sd"); 3]);
    expect_nothing("overcommit", &many.machine(), &usual_measurements());
    // A process whose mmap lock is taken, and one that is too large to read its file.
    let locked = vast(&[]);
    let file = locked.root().join("proc/11/smaps");
    std::fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let large = vast(&[(20_000_000, "rd wr mr mw me ac sd")]).resident(11, 2048);
    for tree in [locked, large] {
        let diagnosis = diagnose("overcommit", &tree.machine(), &usual_measurements());
        assert!(diagnosis.findings.is_empty(), "{diagnosis:?}");
        assert!(diagnosis.not_examined[0].what.contains("fork of 1 process"), "{diagnosis:?}");
    }
}
