//! `record` under each level of the Yama security module, which limits which processes a user may
//! trace. The level is that of the whole machine. The tests restore it, except for the highest
//! level, which lasts until the next boot.

use std::fs;

use crate::support::run::{Finished, PublicDirectory, Record};
use crate::support::texts::assert_contains;
use crate::support::{apply, live_test};

const LEVEL: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// A changed setting, whose former value is restored on drop.
struct Setting {
    file: &'static str,
    former: String,
}

impl Setting {
    fn change(file: &'static str, value: &str) -> Setting {
        let former = fs::read_to_string(file).expect("the setting");
        fs::write(file, value).expect("a new value");
        Setting { file, former }
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        fs::write(self.file, self.former.trim()).expect("the former value");
    }
}

/// Records as an ordinary user, in a directory of its own.
fn record_as_nobody(flags: &[&str]) -> Finished {
    let words = [&["record"], flags, &["--", "sh", "-c", "ls / | wc -l; exit 4"]].concat();
    PublicDirectory::new().run(&[], &words)
}

/// A process may trace its descendants under level 1, and the recorder traces nothing else.
#[apply(live_test)]
#[needs(Yama, Setpriv)]
fn levels_0_and_1_permit_tracing_the_command() {
    for level in ["0", "1"] {
        let _level = Setting::change(LEVEL, level);
        let message = record_as_nobody(&[]).expect_code(4).message();
        for part in ["collecting with ptrace", "recorded 3 launches"] {
            assert!(message.contains(part), "level {level}: {message}");
        }
    }
}

#[apply(live_test)]
#[needs(Yama, Setpriv)]
fn at_level_2_ordinary_users_may_not_trace() {
    let _level = Setting::change(LEVEL, "2");
    let refused = record_as_nobody(&["--collector", "ptrace"]).expect_code(125).message();
    assert_contains(&refused, ["ptrace_scope is 2: only root may trace"]);
    // Root, with CAP_SYS_PTRACE, may trace.
    Record::new().run(["sh", "-c", "ls / | wc -l; exit 4"]).expect_code(4);
    let refused = record_as_nobody(&[]).expect_code(125).message();
    assert_contains(&refused, ["ptrace_scope is 2", "sudo"]);
}

#[apply(live_test)]
#[needs(Yama, Setpriv, Disposable)]
fn at_level_3_no_user_may_trace() {
    fs::write(LEVEL, "3").expect("the highest level");
    for finished in [Record::new().run(["true"]), record_as_nobody(&["--collector", "ptrace"])] {
        let reason = "ptrace_scope is 3: tracing is disabled until the next boot";
        assert_contains(&finished.expect_code(125).message(), [reason]);
    }
}
