//! `record` under each level of the Yama security module, which limits which processes a user may trace. The level is that of the whole
//! machine. The tests restore it, except for the highest level, which lasts until the next boot.

use std::fs;

use crate::support::run::{Finished, Record, SPAWNSCOPE, as_nobody, run};
use crate::support::{apply, live_test};

const LEVEL: &str = "/proc/sys/kernel/yama/ptrace_scope";
const PERF_LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";

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
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::Builder::new()
        .tempdir_in("/tmp")
        .expect("a temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("an open directory");
    let program = directory.path().join("spawnscope");
    fs::copy(SPAWNSCOPE, &program).expect("a copy");
    let mut command = as_nobody();
    command.arg(program).arg("record").args(flags);
    command.args(["--", "sh", "-c", "ls / | wc -l; exit 4"]);
    run(command.current_dir(directory.path()).env_remove("LD_LIBRARY_PATH"))
}

/// Returns a message without line breaks.
fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A process may trace its descendants under level 1, and the recorder traces nothing else.
#[apply(live_test)]
#[needs(Yama, Setpriv)]
fn levels_0_and_1_permit_tracing_the_command() {
    for level in ["0", "1"] {
        let _level = Setting::change(LEVEL, level);
        let errors = record_as_nobody(&[]).expect_code(4).errors();
        let message = in_one_line(&errors);
        assert!(message.contains("collecting with ptrace"), "level {level}: {errors}");
        assert!(message.contains("recorded 3 launches"), "level {level}: {errors}");
    }
}

#[apply(live_test)]
#[needs(Yama, Setpriv, PerfLevels)]
fn at_level_2_ordinary_users_may_not_trace_and_perf_is_used() {
    let _level = Setting::change(LEVEL, "2");
    let refused = record_as_nobody(&["--collector", "ptrace"]).expect_code(125).errors();
    assert!(
        in_one_line(&refused).contains("ptrace_scope is 2: only root may trace"),
        "{refused}"
    );
    // Root, with CAP_SYS_PTRACE, may trace.
    let record = Record::new().flags(&["--collector", "ptrace"]);
    record.run(["sh", "-c", "ls / | wc -l; exit 4"]).expect_code(4);

    let perf_level = Setting::change(PERF_LEVEL, "2");
    let errors = record_as_nobody(&[]).expect_code(4).errors();
    let message = in_one_line(&errors);
    assert!(message.contains("collecting with perf"), "{errors}");
    assert!(message.contains("ptrace_scope is 2"), "{errors}");
    drop(perf_level);

    // Debian's kernels have level 3, which refuses perf events; others treat it as 2.
    let _perf_level = Setting::change(PERF_LEVEL, "3");
    let finished = record_as_nobody(&[]);
    let message = in_one_line(&finished.errors());
    assert!(
        message.contains("collecting with perf") || finished.code() == 125,
        "{}",
        finished.errors()
    );
    assert!(
        message.contains("ptrace_scope is 2") && message.contains("sudo"),
        "{}",
        finished.errors()
    );
}

#[apply(live_test)]
#[needs(Yama, Setpriv, Disposable)]
fn at_level_3_no_user_may_trace() {
    fs::write(LEVEL, "3").expect("the highest level");
    let record = Record::new().flags(&["--collector", "ptrace"]);
    for errors in [
        record.run(["true"]).expect_code(125).errors(),
        record_as_nobody(&["--collector", "ptrace"]).expect_code(125).errors(),
    ] {
        assert!(
            in_one_line(&errors).contains("ptrace_scope is 3: tracing is disabled until the next boot"),
            "{errors}"
        );
    }
}
