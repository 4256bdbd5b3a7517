//! Tests each phase with a workload that lengthens only that phase, by an amount that it prints.

use crate::support::phases::{assert_only_this_phase_grows, assert_phase_grows, words};
use crate::support::prelude::*;

// `create` and `teardown` are slow: only gigabytes of pages make them longer than the noise of a
// busy machine.
live_test! {
    #[needs(Ebpf)]
    fn create_grows_with_the_memory_of_the_parent = assert_phase_grows("create");
    #[needs(Realtime)]
    fn queue_grows_while_the_parent_keeps_the_only_cpu = assert_phase_grows("queue");
    #[needs(Ebpf)]
    fn setup_grows_when_the_child_sleeps_before_exec = assert_phase_grows("setup");
    #[needs(MountNs, Fanotify)]
    fn exec_grows_with_a_permission_scanner = assert_phase_grows("exec");
    #[needs(Ebpf)]
    fn load_grows_with_a_slow_relocation = assert_phase_grows("load");
    fn run_grows_when_the_program_sleeps = assert_phase_grows("run");
    fn teardown_grows_with_the_memory_of_the_child = assert_phase_grows("teardown");
    fn reap_grows_when_the_parent_waits_late = assert_phase_grows("reap");
}

#[apply(live_test)]
fn a_wait_with_wnowait_does_not_reap() {
    let [base, long] = ["base", "long"].map(|amount| words(&["long_reap"], &[amount, "look"]));
    assert_only_this_phase_grows(&[], "reap", &base, &long);
}
