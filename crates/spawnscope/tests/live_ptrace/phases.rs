//! The phases that the ptrace collector knows, with workloads that each lengthen only one phase, by
//! an amount that they print.

use crate::support::live_test;
use crate::support::phases::{assert_phase_grows, assert_phase_grows_with};

const CALLS: &[&str] = &["--launcher-calls"];

live_test! {
    #[needs(Cc)]
    fn create_is_known_with_the_memory_of_the_parent_if_launcher_calls_are_traced = assert_phase_grows_with(CALLS, "create");
    #[needs(Cc, Realtime)]
    fn queue_is_known_while_the_parent_keeps_the_only_cpu = assert_phase_grows("queue");
    #[needs(Cc)]
    fn setup_is_known_when_the_child_sleeps_before_exec = assert_phase_grows("setup");
    #[needs(Cc, MountNs, Fanotify)]
    fn exec_is_known_with_a_permission_scanner = assert_phase_grows("exec");
    #[needs(Cc)]
    fn load_is_known_with_a_slow_relocation = assert_phase_grows("load");
    fn run_is_known_when_the_program_sleeps = assert_phase_grows("run");
    fn teardown_is_known_with_the_memory_of_the_child = assert_phase_grows("teardown");
}
