//! Tests each phase with a workload that lengthens only that phase, by an amount that it prints.

use crate::support::phases::{assert_only_this_phase_grows, limited_megabytes, words};
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn create_grows_with_the_memory_of_the_parent() {
    let megabytes = limited_megabytes(2048);
    let command = |amount: &str| words(&["long_create"], &[amount, &megabytes]);
    assert_only_this_phase_grows("create", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc, Realtime)]
fn queue_grows_while_the_parent_keeps_the_only_cpu() {
    let command = |amount: &str| words(&["long_queue"], &[amount]);
    assert_only_this_phase_grows("queue", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn setup_grows_when_the_child_sleeps_before_exec() {
    let command = |amount: &str| [words(&["long_setup"], &[amount]), words(&["tiny"], &[])].concat();
    assert_only_this_phase_grows("setup", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify)]
fn exec_grows_with_a_permission_scanner() {
    let mount_point = tempfile::tempdir().expect("a temporary directory");
    let command = |amount: &str| {
        let program = [words(&["long_exec"], &[amount]), words(&["tiny"], &[])].concat();
        [program, vec![mount_point.path().into()]].concat()
    };
    assert_only_this_phase_grows("exec", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn load_grows_with_a_slow_relocation() {
    assert_only_this_phase_grows(
        "load",
        &words(&["launch_each", "load_base"], &[]),
        &words(&["launch_each", "load_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn run_grows_when_the_program_sleeps() {
    assert_only_this_phase_grows(
        "run",
        &words(&["launch_each", "run_base"], &[]),
        &words(&["launch_each", "run_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn teardown_grows_with_the_memory_of_the_child() {
    let megabytes = limited_megabytes(1024);
    let command = |amount: &str| words(&["long_teardown"], &[amount, &megabytes]);
    assert_only_this_phase_grows("teardown", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn reap_grows_when_the_parent_waits_late() {
    let command = |amount: &str| words(&["long_reap"], &[amount]);
    assert_only_this_phase_grows("reap", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_with_wnowait_does_not_reap() {
    let command = |amount: &str| words(&["long_reap"], &[amount, "look"]);
    assert_only_this_phase_grows("reap", &command("base"), &command("long"));
}
