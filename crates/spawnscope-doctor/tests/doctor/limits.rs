//! Tests of the checks `open-files` and `process-limits`.

use spawnscope_data::event::Nanos;
use spawnscope_doctor::{Measured, Severity};

use crate::tree::{Tree, expect_finding, expect_nothing, fix, usual_measurements};

fn with_file_limit(limit: &str) -> Tree {
    let heading = "Limit                     Soft Limit           Hard Limit           Units";
    let row = format!("Max open files            {limit}                 1048576              files");
    Tree::new().file("proc/self/limits", format!("{heading}\n{row}\n"))
}

#[test]
fn a_huge_limit_on_open_files_is_reported_with_the_time_of_a_loop() {
    let finding = expect_finding(
        "open-files",
        &with_file_limit("1048576").machine(),
        &usual_measurements(),
        Severity::Problem,
        &["1,048,576", "ulimit -S -n 1024"],
    );
    assert_eq!(finding.effect.unwrap().span, Nanos(104_857_600));
    let quick = Measured { system_call: Some(Nanos(50)), ..usual_measurements() };
    expect_finding("open-files", &with_file_limit("131072").machine(), &quick, Severity::Note, &["131,072"]);
    expect_finding(
        "open-files",
        &with_file_limit("unlimited").machine(),
        &usual_measurements(),
        Severity::Problem,
        &["4,294,967,295"],
    );
    expect_nothing("open-files", &with_file_limit("65536").machine(), &usual_measurements());
}

fn with_tasks(tasks: u32) -> Tree {
    Tree::new()
        .file("proc/loadavg", format!("0.10 0.20 0.30 1/{tasks} 4711\n"))
        .file("proc/sys/kernel/pid_max", "1000\n")
        .file("proc/sys/kernel/threads-max", "100000\n")
}

#[test]
fn limits_on_processes_are_reported_when_they_are_nearly_reached() {
    expect_finding(
        "process-limits",
        &with_tasks(900).machine(),
        &usual_measurements(),
        Severity::Problem,
        &["kernel.pid_max", "900 of 1,000", "  sysctl kernel.pid_max=2000"],
    );
    expect_nothing("process-limits", &with_tasks(100).machine(), &usual_measurements());
    // A nested pid namespace has its own limit, and only its own tasks count.
    let inside = with_tasks(900).link("proc/self/ns/pid", "pid:[4026532300]");
    expect_nothing("process-limits", &inside.process(10, 1, "server", 1).machine(), &usual_measurements());
    let group = with_tasks(100)
        .file("proc/self/cgroup", "0::/user/job\n")
        .file("sys/fs/cgroup/user/job/pids.max", "max\n")
        .file("sys/fs/cgroup/user/job/pids.current", "10\n")
        .file("sys/fs/cgroup/user/pids.max", "50\n")
        .file("sys/fs/cgroup/user/pids.current", "10\n");
    expect_nothing("process-limits", &group.machine(), &usual_measurements());
    expect_finding(
        "process-limits",
        &group.file("sys/fs/cgroup/user/pids.current", "45\n").machine(),
        &usual_measurements(),
        Severity::Problem,
        &["control group /user", "45 of 50", "  echo 100 >'/sys/fs/cgroup/user/pids.max'"],
    );
    let old = with_tasks(100)
        .file("proc/self/cgroup", "4:pids:/job\n3:memory:/\n")
        .file("sys/fs/cgroup/pids/job/pids.max", "10\n")
        .file("sys/fs/cgroup/pids/job/pids.current", "9\n");
    expect_finding(
        "process-limits",
        &old.machine(),
        &usual_measurements(),
        Severity::Problem,
        &["control group /job", "  echo 20 >'/sys/fs/cgroup/pids/job/pids.max'"],
    );
}

/// Returns a machine on which this process is in a full control group.
fn in_group(group: &str) -> Tree {
    let directory = format!("sys/fs/cgroup/{group}");
    with_tasks(100)
        .file("proc/self/cgroup", format!("0::/{group}\n"))
        .file(&format!("{directory}/pids.max"), "50\n")
        .file(&format!("{directory}/pids.current"), "45\n")
}

#[test]
fn the_fix_is_the_command_that_raises_the_nearly_reached_limit() {
    let service = fix("process-limits", &in_group("system.slice/build.service"));
    assert!(service.contains("  systemctl set-property 'build.service' TasksMax=100"), "{service}");
    let user_unit =
        fix("process-limits", &in_group("user.slice/user-1000.slice/user@1000.service/app.slice/term.scope"));
    assert!(user_unit.contains("  systemctl --user set-property 'term.scope' TasksMax=100"), "{user_unit}");
    let manager = fix("process-limits", &in_group("user.slice/user-1000.slice/user@1000.service"));
    assert!(manager.contains("systemctl set-property 'user@1000.service'"), "{manager}");
    let inside = fix("process-limits", &in_group("").file(".dockerenv", ""));
    assert!(inside.contains("--pids-limit") && !inside.contains("echo"), "{inside}");
    let threads = fix(
        "process-limits",
        &with_tasks(900).file("proc/sys/kernel/pid_max", "4194304\n").file("proc/sys/kernel/threads-max", "1000\n"),
    );
    assert!(threads.contains("  sysctl kernel.threads-max=2000") && !threads.contains("pid_max"), "{threads}");
    let full = fix(
        "process-limits",
        &with_tasks(4_000_000)
            .file("proc/sys/kernel/pid_max", "4194304\n")
            .file("proc/sys/kernel/threads-max", "9999999\n"),
    );
    assert!(full.contains("cannot be raised"), "{full}");
    let inside = fix("process-limits", &with_tasks(900).file(".dockerenv", ""));
    assert!(inside.contains("on the host"), "{inside}");
}

fn with_user_limits(user: u32, limit: &str, hard: &str) -> Tree {
    with_tasks(100)
        .process(10, 1, "server", 1)
        .process(11, 1, "bash", 1)
        .file("proc/self/status", format!("Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\n"))
        .file("proc/self/limits", format!("Max processes             {limit}      {hard}     processes\n"))
}

#[test]
fn the_limit_of_a_user_counts_threads_and_does_not_apply_to_root() {
    for (hard, command) in [("unlimited", "  ulimit -S -u 18\n"), ("12", "  ulimit -S -u 12\n"), ("9", "limits.conf")] {
        let fix = fix("process-limits", &with_user_limits(1000, "9", hard));
        assert!(fix.contains(command) && fix.contains("ulimit") == (hard != "9"), "{fix}");
    }
    expect_finding(
        "process-limits",
        &with_user_limits(1000, "9", "9").machine(),
        &usual_measurements(),
        Severity::Problem,
        &["RLIMIT_NPROC of user 1000", "8 of 9"],
    );
    for (user, limit) in [(1000, "unlimited"), (0, "9")] {
        expect_nothing("process-limits", &with_user_limits(user, limit, limit).machine(), &usual_measurements());
    }
}
