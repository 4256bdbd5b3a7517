//! The phases that the ptrace collector knows, with workloads that each lengthen only one phase, by an amount that they print.

use crate::support::phases::{
    assert_only_this_phase_grows, assert_only_this_phase_grows_with, limited_megabytes, words,
};
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Cc)]
fn create_is_known_with_the_memory_of_the_parent_if_launcher_calls_are_traced() {
    let megabytes = limited_megabytes(2048);
    let command = |amount: &str| words(&["long_create"], &[amount, &megabytes]);
    assert_only_this_phase_grows_with(&["--launcher-calls"], "create", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Cc, Realtime)]
fn queue_is_known_while_the_parent_keeps_the_only_cpu() {
    let command = |amount: &str| words(&["long_queue"], &[amount]);
    assert_only_this_phase_grows("queue", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Cc)]
fn setup_is_known_when_the_child_sleeps_before_exec() {
    let command = |amount: &str| [words(&["long_setup"], &[amount]), words(&["tiny"], &[])].concat();
    assert_only_this_phase_grows("setup", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Cc, MountNs, Fanotify)]
fn exec_is_known_with_a_permission_scanner() {
    let mount_point = tempfile::tempdir().expect("a temporary directory");
    let command = |amount: &str| {
        let program = [words(&["long_exec"], &[amount]), words(&["tiny"], &[])].concat();
        [program, vec![mount_point.path().into()]].concat()
    };
    assert_only_this_phase_grows("exec", &command("base"), &command("long"));
}

#[apply(live_test)]
#[needs(Cc)]
fn load_is_known_with_a_slow_relocation() {
    assert_only_this_phase_grows(
        "load",
        &words(&["launch_each", "load_base"], &[]),
        &words(&["launch_each", "load_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Cc)]
fn run_is_known_when_the_program_sleeps() {
    assert_only_this_phase_grows(
        "run",
        &words(&["launch_each", "run_base"], &[]),
        &words(&["launch_each", "run_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Cc)]
fn teardown_is_known_with_the_memory_of_the_child() {
    let megabytes = limited_megabytes(1024);
    let command = |amount: &str| words(&["long_teardown"], &[amount, &megabytes]);
    assert_only_this_phase_grows("teardown", &command("base"), &command("long"));
}
