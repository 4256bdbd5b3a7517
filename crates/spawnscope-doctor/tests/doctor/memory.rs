//! Tests of the check `large-parents`: processes whose fork would be slow.

use spawnscope_data::event::Nanos;

use crate::tree::{Tree, expect_nothing, expect_problem, fix, usual_measurements};

/// Returns a machine with a process of this size that has a child, and without any huge pages.
fn with_process(process: &str, mebibytes: u64) -> Tree {
    Tree::new()
        .process(10, 1, process, mebibytes)
        .process(11, 1, "sh", 2)
        .process(12, 10, "git", 2)
        .file("proc/meminfo", "MemTotal: 8000000 kB\nAnonHugePages:         0 kB\n")
}

#[test]
fn large_shells_with_children_fork_slowly() {
    for (name, program) in [("bash", "/usr/bin/bash"), ("build", "/usr/bin/perl"), ("zsh", "/bin/zsh (deleted)")] {
        let shell = with_process(name, 4096).link("proc/10/exe", program);
        let words = [name, "(process 10)", "123 ms for a fork; 1 child now", "a fork takes 30.0 us for each MiB"];
        let finding = expect_problem("large-parents", &shell.machine(), &words);
        // Copying page tables takes 20 us for each MiB, and freeing them 10 us.
        assert_eq!(finding.effect.unwrap().span, Nanos(122_880_000));
    }
}

#[test]
fn small_shells_shells_without_children_and_other_programs_have_no_findings() {
    let alone = Tree::new().process(10, 1, "bash", 4096);
    // A Python script with the name of a shell is not a shell.
    let script = with_process("bash", 4096).link("proc/10/exe", "/usr/bin/python3.11");
    // All of the machine's huge pages may belong to the shell.
    let huge = with_process("bash", 4096).file("proc/meminfo", "AnonHugePages:   4194304 kB\n");
    for tree in [alone, script, huge, with_process("bash", 100), with_process("server", 4096)] {
        expect_nothing("large-parents", &tree.machine(), &usual_measurements());
    }
    let few_huge_pages = with_process("bash", 4096).file("proc/meminfo", "AnonHugePages:   1048576 kB\n");
    let words = ["92.2 ms for a fork"];
    expect_problem("large-parents", &few_huge_pages.machine(), &words);
}

#[test]
fn huge_pages_are_advised_if_they_are_available() {
    let modes = "sys/kernel/mm/transparent_hugepage/enabled";
    let requested = fix("large-parents", &with_process("bash", 4096).file(modes, "always [madvise] never"));
    assert!(requested.contains("glibc.malloc.hugetlb=1"), "{requested}");
    let never = with_process("bash", 4096).file(modes, "always madvise [never]");
    let disabled = fix("large-parents", &never);
    assert!(disabled.contains("disabled") && disabled.contains("as root"), "{disabled}");
    let inside = fix("large-parents", &never.file(".dockerenv", ""));
    assert!(inside.contains("on the host"), "{inside}");
    let always = fix("large-parents", &with_process("bash", 4096).file(modes, "[always] madvise never"));
    assert!(!always.contains("huge"), "{always}");
}

#[test]
fn the_lower_bound_of_page_times_counts_because_load_only_adds_time() {
    let machine = with_process("bash", 1024);
    let mut measured = usual_measurements();
    for constant in &mut measured.constants {
        constant.low_ns = Some(constant.ns / 10.0);
    }
    expect_nothing("large-parents", &machine.machine(), &measured);
    expect_problem("large-parents", &machine.machine(), &["bash"]);
}
