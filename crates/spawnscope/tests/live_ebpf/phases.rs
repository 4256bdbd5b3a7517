//! Tests each phase with a workload that lengthens only that phase, by an amount that it prints.
//! Both collectors know these phases. `reaping.rs` has the last one.

use crate::support::live_test;
use crate::support::phases::assert_phase_grows;

// `create` and `teardown` are slow: only gigabytes of pages make them longer than the noise of a
// busy machine.
live_test! {
    #[needs(Cc)]
    fn create_grows_with_the_memory_of_the_parent = assert_phase_grows("create");
    #[needs(Cc, Realtime)]
    fn queue_grows_while_the_parent_keeps_the_only_cpu = assert_phase_grows("queue");
    #[needs(Cc)]
    fn setup_grows_when_the_child_sleeps_before_exec = assert_phase_grows("setup");
    #[needs(Cc, MountNs, Fanotify)]
    fn exec_grows_with_a_permission_scanner = assert_phase_grows("exec");
    #[needs(Cc)]
    fn load_grows_with_a_slow_relocation = assert_phase_grows("load");
    fn run_grows_when_the_program_sleeps = assert_phase_grows("run");
    fn teardown_grows_with_the_memory_of_the_child = assert_phase_grows("teardown");
}
