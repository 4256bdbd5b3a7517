//! Each phase against a workload that makes just that phase long by a known amount.

use crate::support::phases::{at_most_megabytes, only_this_phase_grows, words};
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn create_grows_with_the_memory_of_the_parent() {
    let megabytes = at_most_megabytes(2048);
    let with = |amount: &str| words(&["long_create"], &[amount, &megabytes]);
    only_this_phase_grows("create", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc, Realtime)]
fn queue_grows_while_the_parent_keeps_the_only_cpu() {
    let with = |amount: &str| words(&["long_queue"], &[amount]);
    only_this_phase_grows("queue", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn setup_grows_when_the_child_sleeps_before_exec() {
    let with = |amount: &str| [words(&["long_setup"], &[amount]), words(&["tiny"], &[])].concat();
    only_this_phase_grows("setup", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc, MountNs, Fanotify)]
fn exec_grows_with_a_permission_scanner() {
    let mount_point = tempfile::tempdir().expect("a temporary directory");
    let with = |amount: &str| {
        let program = [words(&["long_exec"], &[amount]), words(&["tiny"], &[])].concat();
        [program, vec![mount_point.path().into()]].concat()
    };
    only_this_phase_grows("exec", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn load_grows_with_a_slow_relocation() {
    only_this_phase_grows(
        "load",
        &words(&["launch_each", "load_base"], &[]),
        &words(&["launch_each", "load_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn run_grows_when_the_program_sleeps() {
    only_this_phase_grows(
        "run",
        &words(&["launch_each", "run_base"], &[]),
        &words(&["launch_each", "run_long"], &[]),
    );
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn teardown_grows_with_the_memory_of_the_child() {
    let megabytes = at_most_megabytes(1024);
    let with = |amount: &str| words(&["long_teardown"], &[amount, &megabytes]);
    only_this_phase_grows("teardown", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn reap_grows_when_the_parent_waits_late() {
    let with = |amount: &str| words(&["long_reap"], &[amount]);
    only_this_phase_grows("reap", &with("base"), &with("long"));
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_wait_with_wnowait_does_not_reap() {
    let with = |amount: &str| words(&["long_reap"], &[amount, "look"]);
    only_this_phase_grows("reap", &with("base"), &with("long"));
}
