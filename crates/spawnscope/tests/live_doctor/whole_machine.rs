//! Conditions of a whole machine. The test sets them up by mounts that only its own processes see, and by starting processes.

use crate::examination::examine;
use crate::findings::find;
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::workloads::word;
use crate::support::{apply, live_test};

/// The doctor takes a program with the name of a shell for one. A script pretends that the machine does not overcommit memory. On a busy
/// machine, the doctor may have no time to measure the cost of a fork. Takes seconds, for the memory: only real processes show that their
/// memory and their children are read correctly. All else is tested on made-up ones.
#[apply(live_test)]
#[needs(MountNs, PidNs, Cc)]
fn a_large_shell_is_reported_with_the_cost_of_a_fork_and_whether_memory_allows_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let shell = directory.path().join("bash");
    std::fs::copy(word("large_parent"), &shell).expect("the program can be copied");
    let strict = "set -e; t=$(mktemp -d); echo 2 >$t/mode; mount --bind $t/mode /proc/sys/vm/overcommit_memory; \
                  sed '/^CommitLimit/s/ *[0-9]* kB/ 800000 kB/; /^Committed_AS/s/ *[0-9]* kB/ 600000 kB/' /proc/meminfo >$t/memory; \
                  mount --bind $t/memory /proc/meminfo; \"$@\" || code=$?; rm -r $t 2>/dev/null || true; exit ${code:-0}";
    let shell = shell.display().to_string();
    let launcher =
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", &shell, "600", "/bin/sh", "-c", strict, "sh"];
    best_of_three(|| {
        let examination = examine(launcher, "large-parents overcommit");
        ok_if(!examination.unseen().contains("could not be measured"), || examination.unseen())?;
        let finding = find(&examination, "problem", &["bash (process", " now", "keep large data out"])?;
        assert!(finding["effect_ns"].as_u64() >= Some(10_000_000), "{finding:#}");
        examination.expect("problem", &["a fork of bash", "can be committed", "posix_spawn"]);
        Ok(())
    });
}
