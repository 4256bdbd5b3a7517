//! The levels of kernel.perf_event_paranoid that permit perf events. A test sets a level only if it permits at least
//! as much as the present one, so that other tests are not disturbed, and restores the present one. The refusal by higher levels, which only some
//! distributions know, is simulated.

use std::fs;

use crate::support::run::Record;
use crate::support::workloads::word;
use crate::support::{apply, live_test};

const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The level before the test, which is restored on drop.
struct FormerLevel(String);

impl Drop for FormerLevel {
    fn drop(&mut self) {
        let _ = fs::write(SETTING, &self.0);
    }
}

#[apply(live_test)]
#[needs(PerfLevels)]
fn each_level_up_to_two_permits_recording() {
    let before = FormerLevel(fs::read_to_string(SETTING).expect("a setting"));
    let level: i32 = before.0.trim().parse().expect("a number");
    for level in -1..=level.min(2) {
        fs::write(SETTING, level.to_string()).expect("the level");
        let record = Record::new();
        let errors = record.run(["sh", "-c", "/bin/true; exit 4"]).expect_code(4).errors();
        assert!(errors.contains("recorded 2 launches"), "{level}: {errors}");
    }
}

/// Levels above 2 refuse the call with EACCES.
#[apply(live_test)]
#[needs(Cc)]
fn a_refusal_by_a_level_names_the_setting_or_the_capability() {
    let finished = Record::new().through(&[&word("perf_denied")]).run(["true"]);
    finished.expect_code(125).expect_errors(["PERFMON", "perf_event_open"]);
}
