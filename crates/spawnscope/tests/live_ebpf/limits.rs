//! A limit of the machine that is too low is reported before the command starts. If there is little
//! memory, but enough, the recorder uses less.

use std::fs;
use std::path::PathBuf;

use crate::support::needs::control_groups;
use crate::support::prelude::*;

#[apply(live_test)]
fn a_limit_of_too_few_open_files_is_reported() {
    let record = Record::new().through(&["sh", "-c", "ulimit -n 16; exec \"$@\"", "sh"]);
    let finished = record.run(["echo", "ran"]).expect_code(125);
    let message = finished.message();
    assert_contains(&message, ["the limit on open files is 16 (RLIMIT_NOFILE"]);
    assert!(!message.contains("Linux 5.10"), "{message}");
    assert_eq!(finished.output(), "");
}

#[apply(live_test)]
fn the_soft_limit_of_open_files_applies_only_to_the_command() {
    let record = Record::new().through(&["sh", "-c", "ulimit -Sn 16; exec \"$@\"", "sh"]);
    let finished = record.run(["sh", "-c", "ulimit -Sn"]).expect_code(0);
    assert_eq!(finished.output(), "16\n");
}

/// A control group with a memory limit, which is removed on drop.
struct Group(PathBuf);

impl Group {
    fn with_mib(mib: u64) -> Group {
        let directory = control_groups("memory").join(format!("spawnscope-test-{}-{mib}", std::process::id()));
        fs::create_dir(&directory).expect("a control group");
        let group = Group(directory);
        let limit = ["memory.max", "memory.limit_in_bytes"].map(|name| group.0.join(name));
        let limit = limit.into_iter().find(|file| file.exists()).expect("a limit of memory");
        fs::write(limit, (mib << 20).to_string()).expect("the limit is set");
        group
    }

    fn record(&self) -> Record {
        let enter = format!("echo $$ >'{}/cgroup.procs'; exec \"$@\"", self.0.display());
        Record::new().through(&["sh", "-c", &enter, "sh"])
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes that have just ended may still be counted.
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[apply(live_test)]
#[needs(MemoryGroup)]
fn too_little_memory_is_reported_before_the_command_starts() {
    let group = Group::with_mib(20);
    let finished = group.record().run(["echo", "ran"]).expect_code(125);
    let message = finished.message();
    assert_contains(&message, ["recording needs", "the control group"]);
    assert_eq!(finished.output(), "");
    let record = group.record().flags(&["--stacks", "--buffer", "65536"]);
    let finished = record.run(["echo", "ran"]).expect_code(125);
    finished.expect_errors(["recording needs"]);
}

#[apply(live_test)]
#[needs(MemoryGroup)]
fn a_recorder_in_a_small_control_group_uses_less_memory() {
    let group = Group::with_mib(36);
    let record = group.record();
    let script = "i=0; while [ $i -lt 3000 ]; do /bin/true; i=$((i + 1)); done; exit 7";
    let finished = record.run(["sh", "-c", script]).expect_code(7);
    let message = finished.message();
    assert_contains(&message, ["the recorder uses at most", "with a kernel buffer of"]);
    let launches = crate::support::recording::launches(&record.file());
    assert!(launches.all(|_| true).len() > 3000);
}
